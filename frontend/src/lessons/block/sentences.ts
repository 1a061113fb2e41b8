/** Beginnings of sentences, in English, which the model reads best. */
export const SENTENCES = [
  'She opened the door and looked out of the',
  'The capital of France is',
  'The opposite of hot is',
  'Once upon a time there was a little',
  'The animal did not cross the street because it was too',
  'To be or not to be, that is the',
];
