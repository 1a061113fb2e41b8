import OpenSeadragon from 'openseadragon';
import { nameOf, type TileStore, type TileName } from './tile-store';
import type { Pool } from './source';

/** The visible part of a map: fractional cell at the left and top edge, and pixels per cell. */
export interface Frame {
  left: number;
  top: number;
  size: number;
  width: number;
  height: number;
}

/** Centre of the view in cells, and pixels per cell; 0 fits the whole map. */
export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

const LARGEST_CELL = 96; // pixels per cell at the strongest zoom

/** Adds an empty stand-in for OpenSeadragon's inline style sheet, which our content security policy forbids. */
function withoutStyles(): void {
  const name = 'data-openseadragon-mobile-css';
  if (document.querySelector(`style[${name}]`)) return;
  const style = document.createElementNS('https://regard.invalid', 'style'); // another namespace, so that the browser does not treat it as a style
  style.setAttribute(name, 'true');
  document.head.append(style);
}

/** OpenSeadragon over a tile store: it handles movement and loading, the store handles values and colours. */
export class DeepZoom {
  onframe: (frame: Frame) => void = () => {};
  onmove: (cell: { row: number; column: number } | null) => void = () => {};
  onpick: (cell: { row: number; column: number }) => void = () => {};
  onload: () => void = () => {};
  #pool: Pool;
  readonly #viewer: OpenSeadragon.Viewer;
  readonly #tracker: OpenSeadragon.MouseTracker;
  /** Names of the tiles drawn in this frame. */
  readonly #drawn = new Set<string>();
  #estimated = false;
  #whole = true;
  readonly #jobs = new WeakMap<object, AbortController>();

  constructor(
    private readonly element: HTMLElement,
    readonly sheet: TileStore,
    pool: Pool,
    camera: Camera,
    private readonly still: boolean,
  ) {
    this.#pool = pool;
    const { n, m } = sheet.info;
    withoutStyles();
    this.#viewer = OpenSeadragon({
      element,
      tileSources: this.#source() as never,
      drawer: 'canvas',
      imageSmoothingEnabled: false,
      showNavigationControl: false,
      showNavigator: false,
      tabIndex: '' as never,
      blendTime: 0,
      animationTime: still ? 0 : 0.6,
      springStiffness: 9,
      visibilityRatio: 0.6,
      minZoomImageRatio: 0.7,
      maxZoomPixelRatio: Math.max(LARGEST_CELL, 1600 / Math.max(1, Math.min(n, m))),
      zoomPerScroll: 1.35,
      imageLoaderLimit: 6,
      maxImageCacheCount: 256,
      preserveImageSizeOnResize: true,
      gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true },
      gestureSettingsTouch: { clickToZoom: false, dblClickToZoom: true, pinchRotate: false },
    });
    const viewer = this.#viewer;
    viewer.addHandler('open', () => {
      this.look(camera, true);
      this.#tell();
    });
    viewer.addHandler('viewport-change', () => this.#tell());
    viewer.addHandler('animation', () => this.#tell());
    viewer.addHandler('resize', () => {
      const whole = this.#whole; // a view of the whole map stays so after a resize
      requestAnimationFrame(() => {
        if (!viewer.isOpen()) return;
        if (whole) viewer.viewport.goHome(true);
        this.#tell();
      });
    });
    viewer.addHandler('tile-drawing', ({ tile, rendered }) => {
      const name = tile.getUrl();
      this.#drawn.add(name);
      sheet.refresh(name, rendered as CanvasRenderingContext2D);
    });
    viewer.addHandler('update-viewport', () => {
      this.#estimated = sheet.estimated(this.#drawn);
      sheet.look(this.#drawn);
      this.#drawn.clear();
      this.onload();
    });
    viewer.addHandler('canvas-click', (event) => {
      const cell = event.quick ? this.cellAt(event.position) : null;
      if (cell) this.onpick(cell);
    });
    this.#tracker = new OpenSeadragon.MouseTracker({
      element: viewer.canvas,
      moveHandler: (event) => this.onmove(this.cellAt((event as unknown as { position: OpenSeadragon.Point }).position)),
      leaveHandler: () => this.onmove(null),
    });
    sheet.changed = () => viewer.forceRedraw();
  }

  get frame(): Frame {
    const { viewport } = this.#viewer;
    const bounds = viewport.getBounds(true);
    const { m } = this.sheet.info;
    const width = this.element.clientWidth;
    return {
      left: bounds.x * m,
      top: bounds.y * m,
      size: width / (bounds.width * m),
      width,
      height: this.element.clientHeight,
    };
  }

  /** Target of the current animation, or the current view if nothing moves. */
  get camera(): Camera {
    const { viewport } = this.#viewer;
    const centre = viewport.getCenter(false);
    const { m } = this.sheet.info;
    const whole = Math.abs(viewport.getZoom(false) / viewport.getHomeZoom() - 1) < 1e-3;
    if (whole) return { x: 0, y: 0, zoom: 0 };
    return { x: centre.x * m, y: centre.y * m, zoom: (viewport.getZoom(false) * this.element.clientWidth) / m };
  }

  /** The finest level that the view needs. */
  get level(): number {
    const pixels = this.frame.size * OpenSeadragon.pixelDensityRatio;
    const level = Math.floor(Math.log2(Math.max(1, 1 / pixels)) + 1e-6);
    return Math.min(level, this.sheet.info.levels - 1);
  }

  get canvas(): HTMLCanvasElement {
    return this.#viewer.drawer.canvas as HTMLCanvasElement;
  }

  /** Whether a visible tile is an estimate. */
  get estimated(): boolean {
    return this.#estimated;
  }

  look({ x, y, zoom }: Camera, immediately = this.still): void {
    const { viewport } = this.#viewer;
    const { m } = this.sheet.info;
    if (!zoom) {
      viewport.goHome(immediately);
      return;
    }
    viewport.zoomTo((zoom * m) / this.element.clientWidth, undefined, immediately);
    viewport.panTo(new OpenSeadragon.Point(x / m, y / m), immediately);
    viewport.applyConstraints(immediately);
  }

  /** Shows the same part as another map; maps of different lengths are scaled to each other. */
  follow(other: DeepZoom): void {
    const bounds = other.#viewer.viewport.getBounds(true);
    const { viewport } = this.#viewer;
    viewport.zoomTo(other.#viewer.viewport.getZoom(true), undefined, true);
    viewport.panTo(bounds.getCenter(), true);
  }

  zoomBy(factor: number): void {
    this.#viewer.viewport.zoomBy(factor, undefined, this.still);
    this.#viewer.viewport.applyConstraints(this.still);
  }

  /** Moves the view so that a cell is visible. */
  reveal(row: number, column: number): void {
    const { left, top, size, width, height } = this.frame;
    const [x, y] = [(column + 0.5 - left) * size, (row + 0.5 - top) * size];
    const edge = 24;
    if (x > edge && x < width - edge && y > edge && y < height - edge) return;
    const { m } = this.sheet.info;
    this.#viewer.viewport.panTo(new OpenSeadragon.Point((column + 0.5) / m, (row + 0.5) / m), this.still);
  }

  cellAt(point: OpenSeadragon.Point): { row: number; column: number } | null {
    const { left, top, size } = this.frame;
    const { n, m } = this.sheet.info;
    const [row, column] = [Math.floor(top + point.y / size), Math.floor(left + point.x / size)];
    return row >= 0 && row < n && column >= 0 && column < m ? { row, column } : null;
  }

  setPool(pool: Pool): void {
    if (pool === this.#pool) return;
    this.#pool = pool;
    this.#viewer.world.getItemAt(0)?.reset();
    this.#viewer.forceRedraw();
  }

  destroy(): void {
    this.sheet.close();
    this.#tracker.destroy();
    this.#viewer.destroy();
  }

  #tell(): void {
    if (!this.element.clientWidth || !this.#viewer.world.getItemCount()) return;
    this.#whole = this.camera.zoom === 0;
    this.onframe(this.frame);
  }

  #source(): object {
    const { sheet } = this;
    const { n, m, tile, levels } = sheet.info;
    const named = (level: number, x: number, y: number): TileName => ({
      pool: this.#pool,
      level: levels - 1 - level,
      row: y,
      column: x,
    });
    const jobs = this.#jobs;
    return {
      width: m,
      height: n,
      tileSize: tile,
      tileOverlap: 0,
      minLevel: 0,
      maxLevel: levels - 1,
      getTileUrl: (level: number, x: number, y: number) => nameOf(named(level, x, y)),
      getTileHashKey: (level: number, x: number, y: number) => nameOf(named(level, x, y)),
      async downloadTileStart(job: { tile: { level: number; x: number; y: number } } & OpenSeadragon.ImageJob) {
        const stop = new AbortController();
        jobs.set(job, stop);
        try {
          const context = await sheet.canvas(named(job.tile.level, job.tile.x, job.tile.y), stop.signal);
          (job.finish as (...given: unknown[]) => void)(context, null, 'context2d');
        } catch (error) {
          (job as unknown as { fail(message: string, request: null): void }).fail(String(error), null);
        }
      },
      downloadTileAbort(job: object) {
        jobs.get(job)?.abort();
      },
    };
  }
}
