import type { Component } from 'svelte';
import type { Language } from '$lib/language.svelte';
import type { Lesson } from '$lib/lesson.svelte';

/** The lessons in order; each name is a folder. */
export const TITLES: Record<string, Record<Language, string>> = {
  cues: { en: 'Two kinds of cue', zh: '两种提示' },
  regression: { en: 'Kernel regression', zh: '核回归' },
  scores: { en: 'Scoring functions', zh: '打分函数' },
  saturation: { en: 'Why divide by √d', zh: '为什么除以 √d' },
  masks: { en: 'Masks', zh: '掩码' },
  by_hand: { en: 'Self-attention by hand', zh: '手算自注意力' },
  heads: { en: 'Many heads', zh: '多头' },
  relevance: { en: 'Relevance of a text', zh: '文本的相关性' },
  normalisers: { en: 'Soft, sparse, hard', zh: '软、稀疏与硬' },
  block: { en: 'A Transformer block', zh: '一个 Transformer 块' },
  translation: { en: 'Translation', zh: '翻译' },
  bottleneck: { en: 'The bottleneck', zh: '瓶颈' },
};

export const NAMES = Object.keys(TITLES);

// Each lesson has a State type of its own, so here it is any.
export type LessonPage = Component<{ lesson: Lesson<any, any> }>;

const modules = import.meta.glob<{ default: LessonPage }>('./*/Lesson.svelte');

/** The component of a lesson, or null if there is none. */
export async function load(name: string): Promise<LessonPage | null> {
  return (await modules[`./${name}/Lesson.svelte`]?.())?.default ?? null;
}
