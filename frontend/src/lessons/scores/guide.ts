import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

/** Key 1 is twice the query. */
const FAR = [[3, 2], [0.5, 2], [-1.5, 1], [-1, -1.5], [1.5, -1]];

export const guide: GuidedStep<State>[] = [
  {
    state: { chosen: 'dot' },
    look: 'weights',
    en: 'The dot product. Keys 1 and 2 point the way of the query; together they take nine tenths of the weight.',
    zh: '点积。键 1 和键 2 与查询方向相近，一起拿走九成的权重。',
  },
  {
    state: { chosen: 'dot', keys: FAR },
    look: 'weights',
    en: 'Pull key 1 further out in the direction of the query: it takes 97%. A dot product likes length.',
    zh: '把键 1 沿查询的方向拉远：它拿走 97%。点积喜欢长的。',
  },
  {
    state: { chosen: 'cosine', keys: FAR },
    look: 'weights',
    en: 'Cosine sees the angle only: the same long key gets 37%.',
    zh: '余弦只看夹角：同样长的键，只得 37%。',
  },
  {
    state: { chosen: 'gaussian', keys: FAR },
    look: 'weights',
    en: 'The Gaussian likes what is near. Key 1 has gone too far; key 2 wins.',
    zh: '高斯喜欢近的。键 1 走得太远了，键 2 胜出。',
  },
  {
    state: { chosen: 'additive', keys: FAR },
    look: 'weights',
    en: 'Additive attention ends at tanh = 1: key 1 gained two points by its journey, from 33% to 35%.',
    zh: '加性注意力到 tanh = 1 为止：键 1 走了这么远，只从 33% 升到 35%。',
  },
];
