import type { Language } from './language.svelte';

/**
 * One step of a lesson's guide: the fields of the state that it sets, and its caption in each language.
 * Fields that it does not set stay as the steps before it left them; before the first step they have their defaults.
 */
export interface GuidedStep<State extends object> extends Record<Language, string> {
  state: Partial<State>;
  /** The `data-testid` of what the caption speaks of: it is framed, and scrolled into sight. */
  look?: string;
}
