/** What the makers of tools take: where the tools work. */
import { checkOptions, optionNames, StatewrightError, type World } from "@statewright/core";

/** Where tools work. The model never sees any of it. */
export interface ToolOptions {
  /** The folder that the tools work in; relative paths start there, and what lies outside is refused. */
  readonly root: string;
  /** Clock, timers and chance; the real ones by default. */
  readonly world?: World;
}

const places = optionNames<ToolOptions>({ root: true, world: true });

/** Throws `invalid_option` for an option that a maker of tools does not have, and for a root that names no folder. */
export function checkToolOptions(maker: string, options: ToolOptions, more: readonly string[] = []): void {
  checkOptions(maker, options, [...places, ...more]);
  if (typeof options.root === "string" && options.root !== "") return;
  throw new StatewrightError("invalid_option", {
    what: `the root of ${maker} is no folder`,
    next: `Give ${maker}({ root }), the folder that the tools work in`,
  });
}
