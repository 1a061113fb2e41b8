import type { Component } from 'svelte';
import type { GuidedStep } from '$lib/guide';
import type { Language } from '$lib/language.svelte';
import type { Lesson } from '$lib/lesson.svelte';

/** The course in its order; each name is a folder, and a page of the server. */
export const TITLES: Record<string, Record<Language, string>> = {
  why: { en: 'Why attention', zh: '为什么需要注意力' },
  cues: { en: 'Two kinds of cue', zh: '两种提示' },
  regression: { en: 'Kernel regression', zh: '核回归' },
  heatmaps: { en: 'Heatmaps', zh: '热图' },
  scores: { en: 'Scoring functions', zh: '打分函数' },
  saturation: { en: 'Why divide by √d', zh: '为什么除以 √d' },
  by_hand: { en: 'Self-attention by hand', zh: '手算自注意力' },
  masks: { en: 'Masks', zh: '掩码' },
  heads: { en: 'Many heads', zh: '多头' },
  relevance: { en: 'Relevance of a text', zh: '文本的相关性' },
  normalisers: { en: 'Soft, sparse, hard', zh: '软、稀疏与硬' },
  block: { en: 'A Transformer block', zh: '一个 Transformer 块' },
  translation: { en: 'Translation', zh: '翻译' },
  bottleneck: { en: 'The bottleneck', zh: '瓶颈' },
};

/** All lessons of the course, in order. */
export const ORDER = Object.keys(TITLES);

// Each lesson has a State type of its own, so here it is any.
export type LessonPage = Component<{ lesson: Lesson<any, any> }>;

const modules = import.meta.glob<{ default: LessonPage }>('./*/Lesson.svelte');
const guides = import.meta.glob<{ guide: GuidedStep<object>[] }>('./*/guide.ts');

/** The lessons that have a folder. */
export const NAMES = ORDER.filter((name) => `./${name}/Lesson.svelte` in modules);

/** The component of a lesson, or null if there is none. */
export async function load(name: string): Promise<LessonPage | null> {
  return (await modules[`./${name}/Lesson.svelte`]?.())?.default ?? null;
}

/** The guided steps of a lesson; none if it has no guide. */
export async function loadGuide(name: string): Promise<GuidedStep<object>[]> {
  return (await guides[`./${name}/guide.ts`]?.())?.guide ?? [];
}
