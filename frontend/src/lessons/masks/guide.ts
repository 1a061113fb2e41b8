import type { GuidedStep } from '$lib/guide';
import { PRESETS } from './presets';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { n: 8, m: 8, align: null, rules: [...PRESETS.causal] },
    look: 'weights',
    en: 'Causal: query i sees keys 1 to i. The first row has one key only, so its weight is 1.',
    zh: '因果掩码：查询 i 看见键 1 到 i。第一行只有一个键，所以权重是 1。',
  },
  {
    state: { rules: [...PRESETS.local] },
    look: 'weights',
    en: 'A window of three keys, joined by “or” with the first key: no row sees more than four.',
    zh: '三个键宽的窗口，再用“或”加上第一个键：没有一行看见超过四个。',
  },
  {
    state: { rules: [...PRESETS.documents] },
    look: 'weights',
    en: 'Three texts packed into one row of the batch: causal “and” in the same segment. No text sees another.',
    zh: '三段文字装进一批里的同一行：因果“与”同段。谁也看不见别段。',
  },
  {
    state: { rules: [...PRESETS.empty] },
    look: 'weights',
    en: '“Not causal” leaves the last query nothing to see. Its row is hatched: its output is zeros, not NaN.',
    zh: '“非因果”让最后一个查询什么也看不到。那一行画了斜线：输出是零，不是 NaN。',
  },
  {
    state: { n: 4, m: 8, align: 'bottom-right', rules: [...PRESETS.causal] },
    look: 'weights',
    en: 'Four new queries, eight keys, as when a model goes on with a text: aligned at the bottom right, the last query sees everything.',
    zh: '四个新查询，八个键，正如模型续写文字时：按右下角对齐，最后一个查询看见全部。',
  },
];
