/** The viewer as a notebook widget, by anywidget. */
import { mount, unmount } from 'svelte';
import '../app.css';
import './widget.css';
import { language } from '$lib/language.svelte';
import { messages, type Model } from '../viewer/messages';
import { followNotebook } from './colours';
import Widget from './Widget.svelte';

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const asked = model.get('language');
  if (asked === 'en' || asked === 'zh') language.now = asked;
  const source = messages(model);
  const root = document.createElement('div');
  root.className = 'regard-viewer';
  root.lang = language.html;
  el.append(root);
  const stop = followNotebook(root);
  const app = mount(Widget, { target: root, props: { source, model } });
  return () => {
    stop();
    source.close();
    void unmount(app);
  };
}

export default { render };
