/** Tokens as people read them. */

const CONTINUES = '·'; // before a token that goes on with a word

/** The text of a token: without the space that begins a word, and with signs for what cannot be seen. */
export function written(token: string, first = false): string {
  const text = token.replaceAll('\n', '↵').replaceAll('\t', '⇥').replaceAll('\u00a0', '␣').replaceAll('\ufffd', '▯');
  if (text.trim() === '') return '␣';
  if (text.startsWith(' ')) return text.slice(1);
  return first || !/^\p{Script=Latin}/u.test(text) ? text : CONTINUES + text;
}
