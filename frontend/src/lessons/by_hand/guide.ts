import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

const TOKENS = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]];
const LONG = [[3, 0, 3, 0], ...TOKENS.slice(1)];
const EMPTY = [...TOKENS.slice(0, 4), [0, 0, 0, 0]];

export const guide: GuidedStep<State>[] = [
  {
    state: { tokens: TOKENS, scaled: true },
    look: 'scores',
    en: 'Five tokens of four numbers, each query, key and value at once. The scores: how alike is each pair?',
    zh: '五个词元，每个四个数，同时是查询、键和值。看分数：每一对有多像？',
  },
  {
    state: { tokens: TOKENS, scaled: true },
    look: 'weights',
    en: 'Softmax turns each row of scores into shares that sum to 1. Row 5 has a tie: tokens 1, 3 and 5.',
    zh: 'softmax 把每一行分数变成份额，和为 1。第 5 行有并列：词元 1、3、5。',
  },
  {
    state: { tokens: TOKENS, scaled: true },
    look: 'output',
    en: 'Each output row is the tokens, mixed by one row of weights. Token 5 becomes 0.712, 0.5, 0.5, 0.288.',
    zh: '输出的每一行，是词元按一行权重的混合。词元 5 变成 0.712、0.5、0.5、0.288。',
  },
  {
    state: { tokens: TOKENS, scaled: false },
    look: 'weights',
    en: 'Do not divide by √4 = 2, and rows get sharper: token 1 gives itself 0.40 instead of 0.30.',
    zh: '不除以 √4 = 2，每行都更尖：词元 1 给自己 0.40，而不是 0.30。',
  },
  {
    state: { tokens: LONG, scaled: true },
    look: 'weights',
    en: 'Make token 1 three times as long: tokens 3, 4 and 5 now look most at it. Only token 2, whose score with it is 0, does not care.',
    zh: '让词元 1 长三倍：词元 3、4、5 现在都最关注它。只有词元 2 不在乎，它与词元 1 的分数是 0。',
  },
  {
    state: { tokens: EMPTY, scaled: true },
    look: 'output',
    en: 'Make token 5 all zeros: its scores are all 0, its weights all 0.2, its output the plain average.',
    zh: '让词元 5 全为零：它的分数都是 0，权重都是 0.2，输出就是普通的平均。',
  },
];
