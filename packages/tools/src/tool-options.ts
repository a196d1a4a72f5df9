/** Common options of the tool factories. */

import type { World } from "@statewright/core";
import { checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";

/** Common options of tools; never visible to the model. */
export interface ToolOptions {
  /** Root folder of the tools; relative paths start here, and paths outside are denied. */
  readonly root: string;
  /** Clock, timers and randomness. Default: the system's. */
  readonly world?: World;
}

const toolOptionNames = listOptionNames<ToolOptions>({ root: true, world: true });

/** Throws `invalid_option` for an unknown option, and for an invalid `root`. */
export function checkToolOptions(factory: string, options: ToolOptions, extraNames: readonly string[] = []): void {
  checkOptions(factory, options, [...toolOptionNames, ...extraNames]);
  if (typeof options.root === "string" && options.root !== "") return;
  throw invalidOption({
    where: factory,
    option: "root",
    expected: "the path of a folder",
    got: options.root,
    fix: `Pass ${factory}({ root }), the root folder of the tools`,
  });
}
