/** Sets of tools by name: each call makes a fresh list. */
import { readArtifact, StatewrightError, type Tool } from "@statewright/core";
import { askUser } from "./ask-user.ts";
import { bash } from "./bash.ts";
import { editFile } from "./edit-file.ts";
import { find } from "./find.ts";
import { listFiles } from "./list-files.ts";
import { powershell } from "./powershell.ts";
import { readFile } from "./read-file.ts";
import { search } from "./search.ts";
import type { ShellOptions } from "./shell-tool.ts";
import { todo } from "./todo.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";
import { writeFile } from "./write-file.ts";

/** What a preset is made with. */
export interface PresetOptions extends ToolOptions {
  /** How the shell runs commands. */
  readonly shell?: Omit<ShellOptions, keyof ToolOptions>;
}

/** The names of the presets. */
export type PresetName = "coding" | "readonly" | "none" | "all";

/** Which arguments of these tools are paths: for `confinePaths`, which looks at them before a call starts. */
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

/** The default tools, as a list of your own: bash, read_file, write_file, edit_file, list_files, search. */
export function defaultTools(options: PresetOptions): Tool[] {
  const where = whereOf("defaultTools", options);
  return [shellTool(options), readFile(where), writeFile(where), editFile(where), listFiles(where), search(where)];
}

/** The default tools, and find and read_artifact. */
export function codingTools(options: PresetOptions): Tool[] {
  return [...defaultTools(options), find(whereOf("codingTools", options)), readArtifact()];
}

/** Tools that change nothing: read_file, list_files, find, search, read_artifact. */
export function readonlyTools(options: PresetOptions): Tool[] {
  const where = whereOf("readonlyTools", options);
  return [readFile(where), listFiles(where), find(where), search(where), readArtifact()];
}

/** The coding tools, and those that need nothing but the run: todo, ask_user. */
export function allTools(options: PresetOptions): Tool[] {
  return [...codingTools(options), todo(), askUser()];
}

const presets: { readonly [name in PresetName]: (options: PresetOptions) => Tool[] } = {
  coding: codingTools,
  readonly: readonlyTools,
  none: () => [],
  all: allTools,
};

/** A preset by its name, as a configuration has it. Throws `invalid_option` for a name that is none. */
export function presetTools(name: PresetName, options: PresetOptions): Tool[] {
  if (Object.hasOwn(presets, name)) return presets[name](options);
  throw new StatewrightError("invalid_option", {
    what: `there is no preset of tools called ${JSON.stringify(name)}`,
    next: `Give one of ${Object.keys(presets).join(", ")}`,
  });
}

function whereOf(maker: string, options: PresetOptions): ToolOptions {
  checkToolOptions(maker, options, ["shell"]);
  const { shell: _shell, ...where } = options;
  return where;
}

function shellTool(options: PresetOptions): Tool {
  const { shell, ...where } = options;
  const given: ShellOptions = { ...shell, ...where };
  return process.platform === "win32" ? powershell(given) : bash(given);
}
