/** Hovers and completions of a file, by the language services of TypeScript 5.9 and 7. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript-5.9";
import { startLanguageServer } from "./language-server.ts";
import type { CompilerName } from "./type-project.ts";

export interface Editor {
  /** Returns the text of the hover at a position of the file; empty without a hover. */
  hover(position: number): Promise<string>;
  /** Returns the names that are offered at a position of the file, sorted. */
  complete(position: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Opens a file of a project. */
export async function createEditor(compiler: CompilerName, folder: string, file: string): Promise<Editor> {
  const path = join(folder, file);
  return compiler === "TypeScript 7" ? openInServer(folder, path) : openInService(folder, path);
}

/** Opens a file in the language service of TypeScript 5.9. */
function openInService(folder: string, path: string): Editor {
  const config = ts.readConfigFile(join(folder, "tsconfig.json"), ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
  const service = ts.createLanguageService({
    getScriptFileNames: () => [path],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => {
      const text = ts.sys.readFile(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => options,
    getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    realpath: ts.sys.realpath ?? ((path) => path),
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  return {
    hover: async (position) => ts.displayPartsToString(service.getQuickInfoAtPosition(path, position)?.displayParts),
    complete: async (position) =>
      (service.getCompletionsAtPosition(path, position, {})?.entries ?? []).map(({ name }) => name).toSorted(),
    close: async () => service.dispose(),
  };
}

interface Hover {
  readonly contents: { readonly value: string };
}
interface CompletionList {
  readonly items: readonly { readonly label: string }[];
}

/** Opens a file in a language server of TypeScript 7. */
async function openInServer(folder: string, path: string): Promise<Editor> {
  const server = await startLanguageServer(folder);
  const text = await readFile(path, "utf8");
  const uri = pathToFileURL(path).href;
  server.notify("textDocument/didOpen", { textDocument: { uri, languageId: "typescript", version: 1, text } });
  const toParams = (position: number): object => {
    const lines = text.slice(0, position).split("\n");
    return { textDocument: { uri }, position: { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 } };
  };
  return {
    hover: async (position) => {
      const hover = (await server.ask("textDocument/hover", toParams(position))) as Hover | null;
      return hover?.contents.value ?? "";
    },
    complete: async (position) => {
      const list = (await server.ask("textDocument/completion", toParams(position))) as CompletionList | null;
      // The label of an optional property ends with a question mark.
      return (list?.items ?? []).map(({ label }) => label.replace(/\?$/, "")).toSorted();
    },
    close: server.close,
  };
}
