import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { d_k: 4, scaled: false, keys: 16, seed: 0 },
    look: 'histogram',
    en: 'Short vectors, d = 4: the variance of the scores is about 4, and several keys share the weight.',
    zh: '短向量，d = 4：分数的方差约为 4，几个键分享权重。',
  },
  {
    state: { d_k: 256, scaled: false },
    look: 'weights',
    en: 'd = 256: the variance is about 256, and one key takes 99.9%. Which one was drawn by lot.',
    zh: 'd = 256：方差约为 256，一个键拿走 99.9%。是哪一个，全凭抽签。',
  },
  {
    state: { d_k: 256, scaled: false },
    look: 'jacobian-curves',
    en: 'What can a score still change? The Jacobian is 0.001: no gradient comes back, and nothing is learned.',
    zh: '分数还能改变什么？雅可比范数是 0.001：没有梯度传回来，什么也学不到。',
  },
  {
    state: { d_k: 256, scaled: true },
    look: 'weights',
    en: 'Divide by √256 = 16: the variance is about 1 again, and the largest weight is 0.2.',
    zh: '除以 √256 = 16：方差又回到 1 左右，最大的权重是 0.2。',
  },
  {
    state: { d_k: 1024, scaled: true },
    look: 'histogram',
    en: 'Four times as wide, d = 1024: divided by √d, the scores do not notice.',
    zh: '再宽四倍，d = 1024：除以 √d 之后，分数毫无察觉。',
  },
];
