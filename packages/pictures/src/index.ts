/** SVG diagrams of graphs. */

export type { Mark } from "./paint.ts";
export { drawOutline, type SvgOptions, toSvg } from "./to-svg.ts";
