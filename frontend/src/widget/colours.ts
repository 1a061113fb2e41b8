import { theme } from '$lib/theme.svelte';

/** Theme of the notebook: JupyterLab and VS Code name it, elsewhere that of the system is used. */
export function followNotebook(root: HTMLElement): () => void {
  const look = (): void => {
    const { body } = document;
    const said = body.dataset.jpThemeLight ?? body.dataset.vscodeThemeKind;
    const dark = said === 'false' || said === 'vscode-dark' || said === 'vscode-high-contrast';
    theme.chosen = said === undefined ? 'auto' : dark ? 'dark' : 'light';
    root.dataset.theme = theme.chosen;
  };
  look();
  const watcher = new MutationObserver(look);
  watcher.observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-light', 'data-vscode-theme-kind'] });
  return () => watcher.disconnect();
}
