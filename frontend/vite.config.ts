import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { leanKatex } from './lean-katex.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Names the built chunks of a lesson after its folder, because every source is called Lesson.svelte or guide.ts. */
function lessonOf(module: string | null): string {
  const [, folder, file] = module?.match(/\/lessons\/(\w+)\/(\w+)/) ?? [];
  return folder ? (file === 'guide' ? `guide-${folder}` : folder) : '[name]';
}

export default defineConfig({
  plugins: [svelte(), leanKatex()],
  resolve: { alias: { $lib: here('src/lib') } },
  // Relative addresses, so that one build serves a page and a notebook.
  base: './',
  build: {
    outDir: process.env.REGARD_PAGE ?? here('../src/regard/web/static'),
    emptyOutDir: true,
    // The content security policy of the page allows no inline script, style or font.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: { output: { chunkFileNames: ({ facadeModuleId }) => `assets/${lessonOf(facadeModuleId)}-[hash].js` } },
  },
  server: { proxy: { '/api': process.env.REGARD_SERVER ?? 'http://127.0.0.1:8765' } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
