import type { Plugin } from 'vite';

/**
 * Nests the page's style sheet under one element, for use in a notebook. `:where` adds no specificity, so the rules do
 * not affect the notebook and do not override those of a component.
 */
export function scopedCss(element: string): Plugin {
  return {
    name: 'scoped-css',
    enforce: 'pre',
    transform: (code, id) => (id.endsWith('/app.css') ? scoped(code, element) : undefined),
  };
}

export function scoped(css: string, element: string): string {
  const inside = css
    .replace(/:root\[([^\]]*)\]/g, '&[$1]')
    .replace(/:root(?=\s*\{)/g, '&')
    .replace(/^(html|body)(?=\s*\{)/gm, '&')
    // The font size is the notebook's.
    .replace(/font-size: clamp\(100%[^;]*;/, '');
  return `:where(${element}) {\n${inside}\n}\n`;
}
