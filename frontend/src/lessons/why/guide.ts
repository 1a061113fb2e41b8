import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

const sentence = { text: null, seed: 6 };

export const guide: GuidedStep<State>[] = [
  {
    state: { ...sentence, n: 5, place: 2 },
    look: 'recalled-0',
    en: 'Five words have been read. Both networks still name each of them.',
    zh: '读了五个词。两个网络都还能说出每一个。',
  },
  {
    state: { ...sentence, n: 12, place: 2 },
    look: 'recalled-0',
    en: 'Twelve words: without attention the first ones fade, and the last ones stay.',
    zh: '十二个词：没有注意力，开头的词在褪去，最后的词还在。',
  },
  {
    state: { ...sentence, n: 24, place: 2 },
    look: 'path-0',
    en: 'Asked for word 2, the last state names another word of the sentence. It knows what was said, and not where.',
    zh: '问第 2 个词，最后一个状态说出的是句中别的词。它知道说过什么，却不知道在哪里。',
  },
  {
    state: { ...sentence, n: 40, place: 38 },
    look: 'recalled-0',
    en: 'Forty words. The last state still knows word 38, which is near the end, and hardly any of the first thirty.',
    zh: '四十个词。第 38 个词靠近句尾，最后一个状态还知道；前三十个词几乎全忘了。',
  },
  {
    state: { ...sentence, n: 40, place: 2 },
    look: 'path-1',
    en: 'With attention, word 2 is one look away: the question goes straight to the state after it, however long ago that was.',
    zh: '有了注意力，第 2 个词只隔一眼：问题直接看向读完它时的状态，无论隔了多久。',
  },
];
