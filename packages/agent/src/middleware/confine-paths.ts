/** Paths in arguments stay inside a workspace, judged after links. */
import {
  checkOptions,
  defineMiddleware,
  deny,
  type Middleware,
  modelToolOf,
  optionNames,
  StatewrightError,
  type ToolSpec,
} from "@statewright/core";
import { checkFlag } from "../agent/check-option.ts";

/** What `confinePaths` takes. */
export interface ConfineOptions {
  /** The folder that paths must stay in. */
  readonly root: string;
  /**
   * Where a path really leads, after links, from the root, with `/`; undefined when that is outside. `placeInside` of
   * `@statewright/host` says it for this machine.
   */
  readonly place: (root: string, path: string) => Promise<string | undefined>;
  /** Which arguments of which tools are paths, or lists of paths. */
  readonly paths: { readonly [tool: string]: readonly string[] };
  /** Whether it stands around sub-agents too. Default true. */
  readonly tree?: boolean;
}

/**
 * Refuse calls whose paths leave the root, or the tool's own `safety.roots` inside it. A tool that uses files and is not
 * listed in `paths` is refused: nobody knows which of its arguments to look at. So is one that is listed with an argument that
 * it does not have. What a path names can change after the look:
 * tools open files through `workspace` of `@statewright/host`, which looks again at the open file.
 */
export function confinePaths(options: ConfineOptions): Middleware {
  checkOptions(
    "confinePaths",
    options,
    optionNames<ConfineOptions>({ root: true, place: true, paths: true, tree: true }),
  );
  const { root, place, paths, tree = true } = options;
  if (
    typeof root !== "string" ||
    root === "" ||
    typeof place !== "function" ||
    typeof paths !== "object" ||
    paths === null
  )
    throw new StatewrightError("invalid_option", {
      what: "confinePaths lacks its root, its place or its paths",
      next: "Give confinePaths({ root, place: placeInside, paths: { read_file: ['path'] } })",
    });
  checkFlag("confinePaths", { tree });
  return defineMiddleware({
    name: "confinePaths",
    required: true,
    asks: [],
    inherited: tree,
    beforeTool: async ({ call, tool }) => {
      const named = Object.hasOwn(paths, tool.name) ? paths[tool.name] : undefined;
      if (named === undefined)
        return usesFiles(tool)
          ? deny(
              `The tool "${tool.name}" uses files, and nobody said which of its arguments are paths. It is off here.`,
            )
          : undefined;
      const absent = named.find((name) => !hasArgument(tool, name));
      if (absent !== undefined)
        return deny(`The tool "${tool.name}" has no argument "${absent}" that could be looked at. It is off here.`);
      const roots = await Promise.all((tool.safety.roots ?? ["."]).map((inside) => place(root, inside)));
      for (const name of named) {
        const given = (call.args as Readonly<Record<string, unknown>>)[name];
        if (given === undefined || given === null) continue;
        for (const path of Array.isArray(given) ? given : [given]) {
          if (typeof path !== "string") return deny(`The argument "${name}" of "${tool.name}" is no path.`);
          const real = await place(root, path);
          if (real === undefined || !roots.some((inside) => inside !== undefined && liesIn(inside, real)))
            return deny(`The path in "${name}" lies outside the workspace. Give a path inside it.`);
        }
      }
      return undefined;
    },
  });
}

function hasArgument(tool: ToolSpec, name: string): boolean {
  const { properties } = modelToolOf(tool).inputSchema;
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
}

function usesFiles({ safety }: ToolSpec): boolean {
  return safety.roots !== undefined || (safety.filesystem !== undefined && safety.filesystem !== "none");
}

/** By whole names: `src` does not hold `src-2`. */
function liesIn(folder: string, path: string): boolean {
  return folder === "" || folder === "." || path === folder || path.startsWith(`${folder}/`);
}
