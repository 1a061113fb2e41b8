import type { Plugin } from 'vite';

/**
 * The page's style sheet for a guest in somebody else's page: all of it inside one element, with no more weight than
 * before, so that it neither reaches the notebook nor wins over a component.
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
    // A notebook has its own measure of letters.
    .replace(/font-size: clamp\(100%[^;]*;/, '');
  return `:where(${element}) {\n${inside}\n}\n`;
}
