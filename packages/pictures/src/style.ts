/** Colors of a diagram for light and dark mode. */

/** Fill and stroke colors by kind of node and line. */
interface Colours {
  readonly canvas: string;
  readonly text: string;
  readonly soft: string;
  readonly line: string;
  readonly region: readonly [string, string];
  readonly border: string;
  readonly body: readonly [string, string];
  readonly input: readonly [string, string];
  readonly tools: readonly [string, string];
  readonly turn: readonly [string, string];
  readonly state: readonly [string, string];
  readonly good: string;
  readonly bad: string;
  readonly current: string;
}

const light: Colours = {
  canvas: "#ffffff",
  text: "#1c2530",
  soft: "#526071",
  line: "#6b7a8c",
  region: ["#f6f8fa", "#eceff3"],
  border: "#b4bfcb",
  body: ["#eaf1fe", "#4a7bd0"],
  input: ["#e6f7ee", "#2c9464"],
  tools: ["#fef3df", "#c07f16"],
  turn: ["#eaf1fe", "#4a7bd0"],
  state: ["#f1edfd", "#7a66cf"],
  good: "#178a43",
  bad: "#d3261c",
  current: "#a21caf",
};

const dark: Colours = {
  canvas: "#0d1117",
  text: "#e8edf3",
  soft: "#a3b0bf",
  line: "#8593a3",
  region: ["#151b23", "#1d2530"],
  border: "#465361",
  body: ["#15243f", "#6c9bf0"],
  input: ["#10291f", "#46bb85"],
  tools: ["#2f2510", "#dea447"],
  turn: ["#15243f", "#6c9bf0"],
  state: ["#231d3d", "#a594f2"],
  good: "#3fc974",
  bad: "#ff6b61",
  current: "#e879f9",
};

/** Rules without colors, the same in light and dark mode. */
const shapeRules: readonly string[] = [
  createRule(
    "text",
    'font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px;text-anchor:middle',
  ),
  createRule(".title", "text-anchor:start;font-weight:600"),
  createRule(".label text,.note", "font-size:11px"),
  createRule(".shape", "stroke-width:1.5"),
  createRule(".deferred>.shape", "stroke-dasharray:5 3"),
  createRule(".line", "fill:none;stroke-width:1.5"),
  createRule(".route .line,.otherwise .line", "stroke-dasharray:6 4"),
  createRule(".goto .line", "stroke-dasharray:2 4;stroke-linecap:round"),
  createRule(".each .line", "stroke-width:2.5"),
  createRule(".good>.shape,.good .line,.bad>.shape,.bad .line,.current>.shape,.current .line", "stroke-width:3"),
];

/**
 * Style sheet of a self-contained diagram. All selectors are scoped to the class of the diagram, so that the embedding
 * page is unaffected.
 */
export const style: string = [
  ...shapeRules,
  ...createColorRules(light),
  `@media (prefers-color-scheme:dark){${createColorRules(dark).join("")}}`,
].join("");

/** Options of `pictureStyle`. */
export interface PictureStyleOptions {
  /**
   * Selectors of the page's light and dark themes, such as `:root[data-theme="dark"]`. Without them the colors follow
   * the system.
   */
  readonly themes?: { readonly light: string; readonly dark: string };
}

const variablePrefix = "--statewright-";

/**
 * Returns the style sheet of pictures drawn with `style: false`, once for a page. Each color is a CSS variable, such as
 * `--statewright-canvas`: set on the root for light and dark mode of the system, and set again for each selector of
 * `themes`. A page changes a color by a rule of its own for the variable.
 *
 * @example
 * ```ts
 * const css = pictureStyle({ themes: { light: ':root[data-theme="light"]', dark: ':root[data-theme="dark"]' } });
 * const svg = drawOutline(outline, { name: "review", style: false });
 * ```
 */
export function pictureStyle({ themes }: PictureStyleOptions = {}): string {
  const variables = mapColors(light, (name) => `var(${variablePrefix}${name})`);
  return [
    `:root{${declareColors(light)}}`,
    `@media (prefers-color-scheme:dark){:root{${declareColors(dark)}}}`,
    ...(themes === undefined
      ? []
      : [`${themes.light}{${declareColors(light)}}`, `${themes.dark}{${declareColors(dark)}}`]),
    ...shapeRules,
    ...createColorRules(variables),
    "",
  ].join("\n");
}

/** Returns colors by their names; a fill and a stroke have names with `-fill` and `-stroke`. */
function mapColors(colours: Colours, map: (name: string, value: string) => string): Colours {
  const mapPair = (name: string, [fill, stroke]: readonly [string, string]): readonly [string, string] => [
    map(`${name}-fill`, fill),
    map(`${name}-stroke`, stroke),
  ];
  return {
    canvas: map("canvas", colours.canvas),
    text: map("text", colours.text),
    soft: map("soft", colours.soft),
    line: map("line", colours.line),
    region: [map("region-odd", colours.region[0]), map("region-even", colours.region[1])],
    border: map("border", colours.border),
    body: mapPair("body", colours.body),
    input: mapPair("input", colours.input),
    tools: mapPair("tools", colours.tools),
    turn: mapPair("turn", colours.turn),
    state: mapPair("state", colours.state),
    good: map("good", colours.good),
    bad: map("bad", colours.bad),
    current: map("current", colours.current),
  };
}

function declareColors(colours: Colours): string {
  const declarations: string[] = [];
  mapColors(colours, (name, value) => {
    declarations.push(`${variablePrefix}${name}:${value}`);
    return value;
  });
  return declarations.join(";");
}

function createRule(selectors: string, declarations: string): string {
  const scoped = selectors.split(",").map((selector) => `.statewright ${selector}`);
  return `${scoped.join(",")}{${declarations}}`;
}

function createColorRules(colours: Colours): readonly string[] {
  const kinds = (["body", "input", "tools", "turn", "state"] as const).flatMap((kind) => {
    const [fill, stroke] = colours[kind];
    return [createRule(`.${kind}>.shape`, `fill:${fill};stroke:${stroke}`)];
  });
  const marks = (["good", "bad", "current"] as const).flatMap((mark) => [
    createRule(`.${mark}>.shape,.${mark} .line`, `stroke:${colours[mark]}`),
    createRule(`.${mark} .tip`, `fill:${colours[mark]};stroke:${colours[mark]}`),
    createRule(`.${mark} text`, `fill:${colours[mark]}`),
  ]);
  return [
    createRule(".canvas,.ground0", `fill:${colours.canvas}`),
    createRule(".ground1", `fill:${colours.region[0]}`),
    createRule(".ground2", `fill:${colours.region[1]}`),
    createRule("text", `fill:${colours.text}`),
    createRule(".label text,.note", `fill:${colours.soft}`),
    ...kinds,
    createRule(".region>.shape", `stroke:${colours.border}`),
    createRule(".region.odd>.shape", `fill:${colours.region[0]}`),
    createRule(".region.even>.shape", `fill:${colours.region[1]}`),
    createRule(".start>.shape,.end>.dot", `fill:${colours.text};stroke:none`),
    createRule(".end>.shape", `fill:none;stroke:${colours.text}`),
    createRule(".line", `stroke:${colours.line}`),
    createRule(".tip", `fill:${colours.line};stroke:${colours.line}`),
    createRule(".join .tip", `fill:${colours.canvas}`),
    createRule(".each .line", `stroke:${colours.input[1]}`),
    createRule(".each .tip", `fill:${colours.input[1]};stroke:${colours.input[1]}`),
    ...marks,
  ];
}
