import type { Language } from './language.svelte';

/** One step of a lesson's guide: the fields of the state that it sets, and its caption in each language. */
export interface GuidedStep<State extends object> extends Record<Language, string> {
  state: Partial<State>;
}
