import { RULE, type Rule } from './types';

const rule = (given: Partial<Rule>): Rule => ({ ...RULE, ...given });

export const PRESETS = {
  causal: [rule({})],
  local: [rule({ kind: 'window', left: 2, right: 0 }), rule({ kind: 'prefix', length: 1, join: 'or' })],
  documents: [rule({}), rule({ kind: 'segments', length: 3 })],
  past: [rule({}), rule({ kind: 'window', left: 2, right: 2, negate: true })],
  empty: [rule({ negate: true })],
} as const;

export type Preset = keyof typeof PRESETS;
