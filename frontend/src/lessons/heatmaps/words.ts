import type { Kind } from './types';

const kinds: Record<Kind, string> = { identity: 'identity', random: 'random softmax', heads: 'several heads' };

const en = {
  title: 'Heatmaps',
  idea: 'A matrix of weights is easier to see than to read: a row for each query, a column for each key, a colour for each weight. What the colour means is said by the scale.',
  question: 'With a colour scale for each, all heads look equally strong. What hides the truth, and what gives it away?',
  kind: 'Weights',
  kinds,
  n: 'Queries and keys',
  heads: 'Heads',
  shared: 'One colour scale for all',
  again: 'Draw again',
  pictures: 'Rows are queries, columns keys. Point at a cell: all heads show the same one.',
  queries: 'Queries',
  keys: 'Keys',
  head: (i: number) => `Head ${i}`,
  one: { identity: 'Identity', random: 'Softmax of random scores' },
  largest: (value: string) => `largest ${value}`,
  scale: 'weight',
  finding: (flat: number, flatMost: string, sharp: number, sharpMost: string, uniform: string) =>
    `The largest weight of head ${flat} is ${flatMost}, hardly more than the ${uniform} of an even look; of head ${sharp} it is ${sharpMost}.`,
  findingOne: (most: string, uniform: string) => `The largest weight is ${most}; an even look would give each key ${uniform}.`,
  answer: [
    'The scale of each head ends at its own largest weight, so 0.2 in one picture has the colour of 0.9 in another. The numbers at the ends of the scale give it away, and so does one scale for all.',
    'show_heatmaps draws all its matrices on one scale for this reason. A scale for each is right for one question only: where does this head look most?',
  ],
};

export const words: { en: typeof en; zh: typeof en } = {
  en,
  zh: {
    title: '热图',
    idea: '权重矩阵看图比读数容易：一行是一个查询，一列是一个键，一种颜色是一个权重。颜色是什么意思，由色标来说。',
    question: '每张图各用一个色标时，所有的头看上去一样强。什么掩盖了真相？从哪里看得出来？',
    kind: '权重',
    kinds: { identity: '单位矩阵', random: '随机 softmax', heads: '多个头' },
    n: '查询与键的个数',
    heads: '头数',
    shared: '所有图共用一个色标',
    again: '重新抽样',
    pictures: '行是查询，列是键。指向一格：所有的头都显示同一格。',
    queries: '查询',
    keys: '键',
    head: (i) => `头 ${i}`,
    one: { identity: '单位矩阵', random: '随机分数的 softmax' },
    largest: (value) => `最大 ${value}`,
    scale: '权重',
    finding: (flat, flatMost, sharp, sharpMost, uniform) =>
      `头 ${flat} 最大的权重是 ${flatMost}，比处处一样时的 ${uniform} 大不了多少；头 ${sharp} 的是 ${sharpMost}。`,
    findingOne: (most, uniform) => `最大的权重是 ${most}；处处一样时每个键得到 ${uniform}。`,
    answer: [
      '每张图的色标都到自己最大的权重为止，所以这张图里的 0.2 与那张图里的 0.9 颜色相同。色标两端的数说出了真相，共用一个色标也能。',
      '正因如此，show_heatmaps 把所有矩阵画在同一个色标上。各用一个色标只适合一个问题：这个头最看哪里？',
    ],
  },
};
