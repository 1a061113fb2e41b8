/** Builds the viewer as one file for notebooks; `npm run build` builds this and the page. */
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { scopedCss } from './scoped-css.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [scopedCss('.regard-viewer'), svelte()],
  resolve: { alias: { $lib: here('src/lib') } },
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: process.env.REGARD_PAGE ?? here('../src/regard/web/static'),
    emptyOutDir: false,
    lib: { entry: here('src/widget/widget.ts'), formats: ['es'], fileName: () => 'widget.js', cssFileName: 'widget' },
    // One file, because a notebook cannot load chunks later.
    rolldownOptions: { output: { codeSplitting: false } },
    reportCompressedSize: false,
  },
});
