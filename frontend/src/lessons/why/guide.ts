import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { n: 3, place: 1, text: null, seed: 0 },
    en: '',
    zh: '',
  },
];
