import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { kind: 'identity', n: 10 },
    look: 'head-0',
    en: 'The identity: query 3 looks at key 3 and nowhere else. One full cell in each row.',
    zh: '单位矩阵：查询 3 只看键 3，别处都不看。每一行只有一格是满的。',
  },
  {
    state: { kind: 'random', n: 10 },
    look: 'head-0',
    en: 'Softmax of random scores: every key gets something, and each row still sums to 1.',
    zh: '随机分数的 softmax：每个键都分到一点，每一行的和仍是 1。',
  },
  {
    state: { kind: 'heads', heads: 4, shared: false },
    look: 'grid',
    en: 'Four heads, a colour scale for each. They look equally strong. Read the largest weight of each.',
    zh: '四个头，各用一个色标。看上去一样强。读一读各自最大的权重。',
  },
  {
    state: { kind: 'heads', heads: 4, shared: true },
    look: 'grid',
    en: 'The same four heads on one scale: the first looks almost everywhere alike, the last at one key.',
    zh: '同样的四个头，共用一个色标：第一个头几乎处处一样，最后一个头只看一个键。',
  },
];
