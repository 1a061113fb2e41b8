/** Types of the state and the answer of `regard.lab.pages.relevance`. */
import type { Language } from '$lib/language.svelte';

export const PRESETS = ['en-short', 'zh-short', 'en-whole', 'zh-whole'] as const;
export type Preset = (typeof PRESETS)[number];

export interface HeadWords {
  name: string;
  words: string[];
}

export interface State {
  language: Language;
  preset: Preset | 'auto';
  passage: string | null;
  questions: string[] | null;
  encoder: 'auto' | 'minilm' | 'words';
  temperature: number;
  heads: HeadWords[] | null;
}

export interface Verdict {
  winner: number;
  weight: number;
  answer: number | null;
  answer_rank: number | null;
  tempting: number | null;
  tempting_rank: number | null;
  right: boolean | null;
  beaten: boolean | null;
}

export interface Shown {
  preset: Preset;
  segments: string[];
  questions: string[];
  weights: number[][];
  encoder: string;
  unknown: Record<string, string[]>;
  rankings: number[][];
  verdicts: Verdict[];
  among: number[][] | null;
  pairs: { math_class: number; class_apples: number } | null;
  heads: { names: string[]; words: string[][]; weights: number[][][] };
  preset_text: string;
}
