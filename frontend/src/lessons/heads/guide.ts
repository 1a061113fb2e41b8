import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { layer: 3, head: 1 },
    look: 'map',
    en: 'Layer 3, head 1. Find the row of “it”: 0.69 of its weight is on “animal”. Nobody told the model what a pronoun is.',
    zh: '第 3 层，头 1。找到“it”那一行：0.69 的权重在“animal”上。没有人教过模型什么是代词。',
  },
  {
    state: { layer: 0, head: 2 },
    look: 'map',
    en: 'Layer 0, head 2 always looks at the token before: a line beside the diagonal, with 93% of the weight.',
    zh: '第 0 层，头 2 总看前一个词元：对角线旁边的一条线，占了 93% 的权重。',
  },
  {
    state: { layer: 2, head: 7 },
    look: 'map',
    en: 'Layer 2, head 7 puts 89% on [CLS]. A row must sum to 1, and a head with nothing to say rests there.',
    zh: '第 2 层，头 7 把 89% 放在 [CLS] 上。每行的和必须是 1，没有话说的头就停在那里。',
  },
  {
    state: { layer: 5, head: 11 },
    look: 'map',
    en: 'Layer 5, the last: head 11 finds “it” and “animal” once more, with 0.66. Which other heads can you explain?',
    zh: '第 5 层，最后一层：头 11 又一次找到“it”与“animal”，0.66。你还能解释哪些头？',
  },
];
