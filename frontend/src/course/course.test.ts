import { describe, expect, it } from 'vitest';
import type { GuidedStep } from '$lib/guide';
import { NAMES, ORDER } from '../lessons';
import { GLOSSARY, TERMS } from './glossary';
import { PLAN, READ } from './plan';
import { parseProgress } from './progress.svelte';
import { findTerms } from './term-search';

const guides = import.meta.glob<GuidedStep<object>[]>('../lessons/*/guide.ts', { eager: true, import: 'guide' });
const types = import.meta.glob<string>('../lessons/*/types.ts', { eager: true, query: '?raw', import: 'default' });
const HAN = /\p{Script=Han}/u;

/** The names of the fields of `interface State`. */
function fields(name: string): string[] {
  const body = /interface State[^\n]* \{\n(.*?)\n\}/s.exec(types[`../lessons/${name}/types.ts`])![1];
  return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map((match) => match[1]);
}

describe.each(NAMES)('the guide of %s', (name) => {
  const guide = guides[`../lessons/${name}/guide.ts`] ?? [];

  it('has 3 to 6 steps', () => {
    expect(guide.length).toBeGreaterThanOrEqual(3);
    expect(guide.length).toBeLessThanOrEqual(6);
  });

  it('sets fields that the state has', () => {
    for (const step of guide) expect(fields(name)).toEqual(expect.arrayContaining(Object.keys(step.state)));
  });

  it('speaks both languages', () => {
    for (const { en, zh } of guide) {
      expect(en).not.toMatch(/\p{Script=Han}{6}/u);
      expect(en.length).toBeGreaterThan(20);
      expect(zh).toMatch(HAN);
    }
  });
});

describe('the course', () => {
  it('has a plan for each lesson, and for no other', () => {
    expect(Object.keys(PLAN)).toEqual(ORDER);
    for (const { asks, thread, minutes } of Object.values(PLAN)) {
      expect(minutes).toBeGreaterThan(0);
      for (const text of [asks, thread]) {
        expect(text.en).not.toMatch(HAN);
        expect(text.zh).toMatch(HAN);
      }
    }
  });

  it('leads readers to lessons that exist, each once', () => {
    expect(new Set(READ.map((row) => row.name)).size).toBe(READ.length);
    for (const row of READ) expect(ORDER).toContain(row.name);
  });
});

describe('the glossary', () => {
  it('has each term once, with a sentence in both languages and a lesson', () => {
    expect(new Set(TERMS.map((term) => term.id)).size).toBe(TERMS.length);
    expect(GLOSSARY.flatMap((group) => group.terms)).toHaveLength(TERMS.length);
    for (const { means, lesson } of TERMS) {
      expect(means.en).toMatch(/^[^.]+(\. ?[^.]*)?\.$/);
      expect(means.zh).toMatch(/。$/);
      expect(ORDER).toContain(lesson);
    }
  });

  it.each(TERMS)('finds $id by its own name', ({ id, name }) => {
    for (const language of ['en', 'zh'] as const) {
      const found = findTerms(`${name[language]}`, language, new Set()).map((piece) => piece.term?.id);
      if (language === 'en' || id !== 'head') expect(found).toContain(id);
    }
  });
});

describe('terms in a text', () => {
  const ids = (text: string, language: 'en' | 'zh', known = new Set<string>()) =>
    findTerms(text, language, known).flatMap((piece) => piece.term?.id ?? []);

  it('are found once', () => {
    const known = new Set<string>();
    expect(ids('A query scores every key; the query wins.', 'en', known)).toEqual(['query', 'score', 'key']);
    expect(ids('Another query, another mask.', 'en', known)).toEqual(['mask']);
  });

  it('are whole words, and the longest of several', () => {
    expect(ids('He was ahead on his keyboard, valued and tokenless.', 'en')).toEqual([]);
    expect(ids('A context vector in self-attention', 'en')).toEqual(['context-vector', 'self-attention']);
    expect(ids('回头看开头的数值与平均值', 'zh')).toEqual([]);
    expect(ids('上下文向量、自注意力、交叉注意力、每个头', 'zh')).toEqual(['context-vector', 'self-attention', 'cross-attention', 'head']);
  });

  it('leave the text as it is', () => {
    const text = 'Queries, keys and values: [CLS] holds a weight.';
    expect(findTerms(text, 'en', new Set()).map((piece) => piece.text).join('')).toBe(text);
  });
});

describe('stored progress', () => {
  it('is read as it was written', () => {
    const stored = { opened: ['cues', 'scores'], read: ['cues'], last: 'scores' };
    expect(parseProgress(JSON.stringify(stored))).toEqual(stored);
  });

  it.each([null, '', '{', '7', 'null', '[]', '{"opened":3,"read":[1],"last":{}}'])('is none where it is %j', (text) => {
    expect(parseProgress(text)).toEqual({ opened: [], read: [], last: null });
  });
});
