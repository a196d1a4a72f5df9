/** Middleware that confines path arguments to a workspace, after resolving symbolic links. */

import { decide, defineMiddleware, type Middleware, type ToolSpec } from "@statewright/core";
import { checkFlag, checkOptions, invalidOption, listOptionNames, toModelTool } from "@statewright/core/adapter";

/** Root folder, and the path arguments of each tool. */
export interface ConfineOptions {
  /** Root folder of the workspace. */
  readonly root: string;
  /**
   * Resolves a path after symbolic links, relative to the root and with `/`; undefined outside the root. Use
   * `resolvePathInside` of `@statewright/host` for the local file system.
   */
  readonly resolvePath: (root: string, path: string) => Promise<string | undefined>;
  /** Path arguments per tool; an argument may be a path or a list of paths. */
  readonly paths: { readonly [tool: string]: readonly string[] };
  /** True when the middleware applies to sub-agents too. Default true. */
  readonly tree?: boolean;
}

/**
 * Denies tool calls with paths outside the root, or outside the tool's `safety.roots`. Also denies tools with file
 * access that are missing in `paths`, because their path arguments are unknown, and tools listed with an argument
 * that does not exist. A path can change after the check: tools open files through `workspace` of
 * `@statewright/host`, which checks the open file again.
 */
export function confinePaths(options: ConfineOptions): Middleware {
  checkOptions(
    "confinePaths",
    options,
    listOptionNames<ConfineOptions>({ root: true, resolvePath: true, paths: true, tree: true }),
  );
  const { root, resolvePath, paths, tree = true } = options;
  const fix = "Pass confinePaths({ root, resolvePath: resolvePathInside, paths: { read_file: ['path'] } })";
  if (typeof root !== "string" || root === "")
    throw invalidOption({ where: "confinePaths", option: "root", expected: "the path of a folder", got: root, fix });
  if (typeof resolvePath !== "function")
    throw invalidOption({
      where: "confinePaths",
      option: "resolvePath",
      expected: "a function, such as resolvePathInside of @statewright/host",
      got: resolvePath,
      fix,
    });
  if (typeof paths !== "object" || paths === null)
    throw invalidOption({
      where: "confinePaths",
      option: "paths",
      expected: "an object with the path arguments of each tool",
      got: paths,
      fix,
    });
  checkFlag("confinePaths", { tree });
  return defineMiddleware({
    name: "confinePaths",
    required: true,
    inherited: tree,
    beforeTool: async ({ call, tool }) => {
      const pathArguments = Object.hasOwn(paths, tool.name) ? paths[tool.name] : undefined;
      if (pathArguments === undefined)
        return hasFileAccess(tool)
          ? decide.deny(
              `The tool "${tool.name}" uses files, and its path arguments are not configured. It is disabled here.`,
            )
          : undefined;
      const missing = pathArguments.find((name) => !hasArgument(tool, name));
      if (missing !== undefined)
        return decide.deny(`The tool "${tool.name}" has no argument "${missing}" to check. It is disabled here.`);
      const roots = await Promise.all((tool.safety.roots ?? ["."]).map((inside) => resolvePath(root, inside)));
      for (const name of pathArguments) {
        const value = (call.args as Readonly<Record<string, unknown>>)[name];
        if (value === undefined || value === null) continue;
        for (const path of Array.isArray(value) ? value : [value]) {
          if (typeof path !== "string") return decide.deny(`The argument "${name}" of "${tool.name}" is not a path.`);
          const resolved = await resolvePath(root, path);
          if (resolved === undefined || !roots.some((inside) => inside !== undefined && isInside(inside, resolved)))
            return decide.deny(`The path in "${name}" is outside the workspace. Use a path inside it.`);
        }
      }
      return undefined;
    },
  });
}

function hasArgument(tool: ToolSpec, name: string): boolean {
  const { properties } = toModelTool(tool).inputSchema;
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
}

function hasFileAccess({ safety }: ToolSpec): boolean {
  return safety.roots !== undefined || (safety.filesystem !== undefined && safety.filesystem !== "none");
}

/** Compares whole path segments: `src` does not contain `src-2`. */
function isInside(folder: string, path: string): boolean {
  return folder === "" || folder === "." || path === folder || path.startsWith(`${folder}/`);
}
