/** Types of the state and the answer of `regard.lab.pages.why`. */
import type { Language } from '$lib/language.svelte';

export interface State {
  n: number;
  place: number;
  text: string | null;
  seed: number;
}

export interface Candidate {
  /** Place in the vocabulary. */
  word: number;
  probability: number;
}

/** One for the model without attention, one for the model with it. */
export type Both<T> = [T, T];

export interface Shown {
  n: number;
  place: number;
  words: Record<Language, string[]>;
  own: number;
  vocabulary: Record<Language, string[]>;
  longest: number;
  models: Both<'none' | 'luong'>;
  recalled: Both<number[]>;
  guesses: Both<number[]>;
  right: Both<number>;
  candidates: Both<Candidate[]>;
  weights: number[];
  mean: Both<number[]>;
  sentences: number;
  by_length: Both<number[]>;
  hidden: number;
}
