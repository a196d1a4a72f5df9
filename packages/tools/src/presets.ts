/** Tool presets by name; each call creates a new list. */
import { readArtifact, type Tool } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { askUser } from "./ask-user.ts";
import { bash } from "./bash.ts";
import { editFile } from "./edit-file.ts";
import { find } from "./find.ts";
import { listFiles } from "./list-files.ts";
import { powershell } from "./powershell.ts";
import type { WriteToolOptions } from "./protected-paths.ts";
import { readFile } from "./read-file.ts";
import { search } from "./search.ts";
import type { ShellOptions } from "./shell-tool.ts";
import { todo } from "./todo.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";
import { writeFile } from "./write-file.ts";

/** Root folder, protected paths, and settings of the shell tool, for the tools of a preset. */
export interface PresetOptions extends WriteToolOptions {
  /** Options of the shell tool. */
  readonly shell?: Omit<ShellOptions, keyof ToolOptions>;
}

/** Names of the presets. */
export type PresetName = "coding" | "readonly" | "none" | "all";

/** Path arguments per tool, for `confinePaths`. */
export const pathArguments: { readonly [tool: string]: readonly string[] } = {
  bash: ["cwd"],
  powershell: ["cwd"],
  read_file: ["path"],
  write_file: ["path"],
  edit_file: ["path"],
  list_files: ["path"],
  find: [],
  search: ["path"],
};

/** Creates the default tools: bash (powershell on Windows), read_file, write_file, edit_file, list_files, search. */
export function defaultTools(options: PresetOptions): Tool[] {
  const toolOptions = pickToolOptions("defaultTools", options);
  const { protectedPaths } = options;
  const writeOptions = { ...toolOptions, ...(protectedPaths && { protectedPaths }) };
  return [
    createShellTool(options),
    readFile(toolOptions),
    writeFile(writeOptions),
    editFile(writeOptions),
    listFiles(toolOptions),
    search(toolOptions),
  ];
}

/** Creates the default tools, find and read_artifact. */
export function codingTools(options: PresetOptions): Tool[] {
  return [...defaultTools(options), find(pickToolOptions("codingTools", options)), readArtifact()];
}

/** Creates tools without side effects: read_file, list_files, find, search, read_artifact. */
export function readonlyTools(options: PresetOptions): Tool[] {
  const toolOptions = pickToolOptions("readonlyTools", options);
  return [readFile(toolOptions), listFiles(toolOptions), find(toolOptions), search(toolOptions), readArtifact()];
}

/** Creates the coding tools, todo and ask_user. */
export function allTools(options: PresetOptions): Tool[] {
  return [...codingTools(options), todo(), askUser()];
}

const presets: { readonly [name in PresetName]: (options: PresetOptions) => Tool[] } = {
  coding: codingTools,
  readonly: readonlyTools,
  none: () => [],
  all: allTools,
};

/** Creates the tools of a named preset. Throws `invalid_option` for an unknown name. */
export function presetTools(name: PresetName, options: PresetOptions): Tool[] {
  if (Object.hasOwn(presets, name)) return presets[name](options);
  const names = Object.keys(presets).join(", ");
  throw invalidOption({
    where: "presetTools",
    option: "name",
    expected: `one of ${names}`,
    got: name,
    fix: `Use one of ${names}`,
  });
}

function pickToolOptions(factory: string, options: PresetOptions): ToolOptions {
  checkToolOptions(factory, options, ["shell", "protectedPaths"]);
  const { shell: _shell, protectedPaths: _paths, ...toolOptions } = options;
  return toolOptions;
}

function createShellTool(options: PresetOptions): Tool {
  const { shell, protectedPaths: _paths, ...toolOptions } = options;
  const shellOptions: ShellOptions = { ...shell, ...toolOptions };
  return process.platform === "win32" ? powershell(shellOptions) : bash(shellOptions);
}
