/** Ready-made tools of Statewright: a shell, files, search, and presets. */
export { type AskUserArgs, askUser } from "./ask-user.ts";
export { bash } from "./bash.ts";
export { type EditDetails, type EditFileArgs, editFile } from "./edit-file.ts";
export type { Edit } from "./edits.ts";
export { type FindArgs, find } from "./find.ts";
export { type ListFilesArgs, listFiles } from "./list-files.ts";
export { powershell } from "./powershell.ts";
export {
  allTools,
  codingTools,
  defaultTools,
  type PresetName,
  type PresetOptions,
  pathArguments,
  presetTools,
  readonlyTools,
} from "./presets.ts";
export { protectedPaths, type WriteToolOptions } from "./protected-paths.ts";
export { type ReadFileArgs, type ReadFileOptions, readFile } from "./read-file.ts";
export { type SearchArgs, type SearchOptions, search } from "./search.ts";
export { type SharedStateArgs, type SharedStateOptions, sharedState } from "./shared-state.ts";
export type { ShellArgs, ShellDetails, ShellOptions } from "./shell-tool.ts";
export { type TodoArgs, type TodoItem, todo } from "./todo.ts";
export { type TodoListOptions, todoList, todos } from "./todo-list.ts";
export type { ToolOptions } from "./tool-options.ts";
export { type WebFetchArgs, type WebFetchOptions, webFetch } from "./web-fetch.ts";
export { type WriteFileArgs, writeFile } from "./write-file.ts";
