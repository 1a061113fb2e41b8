import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { view: 'weights', chosen: 'softmax', temperature: 1, seed: 0 },
    look: 'weights',
    en: 'Softmax gives everyone something: even the last key, far behind, has 0.018.',
    zh: 'softmax 人人有份：连远远落后的最后一个键也有 0.018。',
  },
  {
    state: { chosen: 'sparsemax', temperature: 1 },
    look: 'weights',
    en: 'Sparsemax on the same scores: the first key takes all, the others get exactly 0.',
    zh: '同样的分数用 sparsemax：第一个键拿走全部，其余的恰好是 0。',
  },
  {
    state: { chosen: 'sparsemax', temperature: 5 },
    look: 'weights',
    en: 'Warm it to 5: three keys share, and two still get exactly 0. Softmax never does that.',
    zh: '升温到 5：三个键分享，另外两个仍然恰好是 0。softmax 从来做不到。',
  },
  {
    state: { chosen: 'entmax15', temperature: 1 },
    look: 'weights',
    en: 'Entmax 1.5 stands between the two: on the first scores three keys have a share.',
    zh: 'entmax 1.5 介于两者之间：还是开头的分数，三个键有份。',
  },
  {
    state: { chosen: 'sample', temperature: 1 },
    look: 'weights',
    en: 'Hard attention draws one key, by the chances of softmax, and gives it everything. Draw again: which keys come most often?',
    zh: '硬注意力按 softmax 的概率抽一个键，把一切都给它。再抽几次：哪些键来得最多？',
  },
  {
    state: { view: 'gradient', temperature: 1, rate: 0.5, seed: 0, rewards: null, step: 12 },
    look: 'learned',
    en: 'Only key 2 earns a reward, and a draw shows no more than its own. After twelve draws key 2 has 0.71. Press “Play”: each draw teaches a little.',
    zh: '只有键 2 有奖励，而每抽一次，只看到抽中的那个键的奖励。抽过十二次，键 2 的概率已是 0.71。按“播放”：每抽一次就学一点。',
  },
];
