import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { mode: 'average', kernel: 'gaussian', w: 1 },
    look: 'fit',
    en: 'Without nearness every point counts the same, and the answer is the same for every x: a flat line.',
    zh: '不看远近时，每个点的权重都一样，于是处处的答案也一样：一条水平线。',
  },
  {
    state: { mode: 'fixed', w: 1 },
    look: 'fit',
    en: 'Now near points count more, and the line bends. It is still too flat: with w = 1 too many points are near.',
    zh: '现在近处的点权重更大，线弯了。但还是太平：w = 1 时，算近的点太多。',
  },
  {
    state: { mode: 'fixed', w: 3 },
    look: 'fit',
    en: 'Set w to 3: which points count? Point at an x to see them. The line follows the truth now.',
    zh: '把 w 调到 3：哪些点算数？指向一个 x 就能看见。现在线跟上了真实曲线。',
  },
  {
    state: { mode: 'fixed', w: 10 },
    look: 'fit',
    en: 'w = 10 goes too far: a handful of points decide at each x, and the line copies their noise. The leave-one-out error rises again.',
    zh: 'w = 10 就过头了：每个 x 处只由几个点决定，线抄下了它们的噪声。留一误差又升高了。',
  },
  {
    state: { mode: 'learned', w: 1 },
    look: 'fit',
    en: 'Nobody has to guess w. Learned from the points, it ends near 3.4.',
    zh: 'w 不必靠猜。从数据里学，它停在 3.4 附近。',
  },
  {
    state: { mode: 'fixed', kernel: 'boxcar', w: 3 },
    look: 'fit',
    en: 'Another kernel: the boxcar counts all points within reach alike and no others, so the line has steps.',
    zh: '换一个核：均匀核对够得着的点一视同仁，其余的一概不算，于是线有了台阶。',
  },
];
