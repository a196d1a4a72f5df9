/** Hovers and completions of a file, by the language service of TypeScript 5.9. */
import { join } from "node:path";
import ts from "typescript-5.9";

export interface Editor {
  /** Text of the hover at a position of the file; empty without a hover. */
  hover(position: number): string;
  /** Names that are offered at a position of the file, sorted. */
  complete(position: number): readonly string[];
}

/** Opens a file of a project. */
export function createEditor(folder: string, file: string): Editor {
  const path = join(folder, file);
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
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  return {
    hover: (position) => ts.displayPartsToString(service.getQuickInfoAtPosition(path, position)?.displayParts),
    complete: (position) =>
      (service.getCompletionsAtPosition(path, position, {})?.entries ?? []).map(({ name }) => name).toSorted(),
  };
}
