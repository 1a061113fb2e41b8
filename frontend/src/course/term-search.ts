import type { Language } from '$lib/language.svelte';
import { TERMS, type Term } from './glossary';

export interface Piece {
  text: string;
  term?: Term;
}

/** One expression for all terms of a language, the longest first: "context vector" before "vector". */
function expression(language: Language): RegExp {
  const sources = [...TERMS].sort((a, b) => b.name[language].length - a.name[language].length);
  const all = sources.map((term) => `(?<${group(term)}>${term.written[language]})`).join('|');
  return language === 'zh' ? new RegExp(all, 'gu') : new RegExp(`(?<![\\w.-])(?:${all})(?![\\w-])`, 'giu');
}

const group = (term: Term) => term.id.replaceAll('-', '_');
const EXPRESSIONS: Partial<Record<Language, RegExp>> = {};

/** Cuts a text at the first occurrence of each term that is not in `known`, and adds these terms to `known`. */
export function findTerms(text: string, language: Language, known: Set<string>): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll((EXPRESSIONS[language] ??= expression(language)))) {
    const term = TERMS.find((term) => match.groups![group(term)] !== undefined)!;
    if (known.has(term.id)) continue;
    known.add(term.id);
    if (match.index > end) pieces.push({ text: text.slice(end, match.index) });
    pieces.push({ text: match[0], term });
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end) });
  return pieces;
}
