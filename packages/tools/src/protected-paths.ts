/** Paths whose content other programs execute: a person approves each write. */
import { resolve } from "node:path";
import { checkStrings, invalidOption } from "@statewright/core/adapter";
import { resolvePathInside } from "@statewright/host";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Options of tools that write files. */
export interface WriteToolOptions extends ToolOptions {
  /**
   * Names of files and folders, or paths such as `.github/workflows`, at any depth: a person approves each write to
   * such a file, or to a file below such a folder. Default: {@link protectedPaths}. An empty list protects nothing.
   */
  readonly protectedPaths?: readonly string[];
}

/**
 * Default protected paths: files that Git, shells, package managers, editors, agents and CI systems execute, or that
 * configure what these programs execute.
 */
export const protectedPaths: readonly string[] = Object.freeze([
  ".git",
  ".gitconfig",
  ".gitmodules",
  ".githooks",
  ".husky",
  "lefthook.yml",
  "lefthook.yaml",
  ".lefthook.yml",
  ".lefthook.yaml",
  ".pre-commit-config.yaml",
  ".github/workflows",
  ".github/actions",
  ".gitlab-ci.yml",
  ".circleci",
  ".travis.yml",
  "azure-pipelines.yml",
  "Jenkinsfile",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".yarn",
  ".pnpmfile.cjs",
  "bunfig.toml",
  ".cargo",
  ".mvn",
  "mise.toml",
  ".mise.toml",
  ".envrc",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".vimrc",
  ".exrc",
  ".nvim.lua",
  ".ssh",
  ".vscode",
  ".idea",
  ".devcontainer",
  ".mcp.json",
  ".claude",
  ".cursor",
  ".codex",
  ".gemini",
  ".zed",
]);

/** Throws `invalid_option` for invalid options of a tool that writes files. */
export function checkWriteToolOptions(factory: string, options: WriteToolOptions): void {
  checkToolOptions(factory, options, ["protectedPaths"]);
  const { protectedPaths: paths } = options;
  if (paths === undefined) return;
  checkStrings(factory, { protectedPaths: paths });
  const empty = paths.find((path) => splitPath(path).length === 0);
  if (empty === undefined) return;
  throw invalidOption({
    where: factory,
    option: "protectedPaths",
    expected: "names or relative paths of files and folders",
    got: empty,
    fix: 'Use names such as ".git", or paths such as ".github/workflows"',
  });
}

/** Creates `needsApproval` of a tool that writes the file in its argument `path`. */
export function createWriteReview({
  root,
  protectedPaths: paths = protectedPaths,
}: WriteToolOptions): (args: { readonly path: string }) => Promise<string | undefined> {
  const rules = paths.map(splitPath);
  return async ({ path }) => {
    // A workspace resolves `..` in the text of the path, before links.
    const real = await resolvePathInside(root, resolve(root, path));
    if (real === undefined) return undefined;
    const parts = splitPath(real);
    const index = rules.findIndex((rule) => containsParts(parts, rule));
    if (index === -1) return undefined;
    return `${real} is protected (${paths[index]}): other programs execute what is written there`;
  };
}

/**
 * Splits a path into comparable names: file systems may ignore case, dots and spaces at the end, and some invisible
 * characters, and Windows has the short name `git~1`.
 */
function splitPath(path: string): readonly string[] {
  return path
    .split(/[\\/]/)
    .map((name) =>
      name
        .normalize("NFKC")
        .replaceAll(ignorableCharacters, "")
        .replace(/:.*$/, "")
        .replace(/(?<=[^. ])[. ]+$/, "")
        .toLowerCase()
        .replace(/^git~\d+$/, ".git"),
    )
    .filter((name) => name !== "" && name !== ".");
}

const ignorableCharacters = /\p{Default_Ignorable_Code_Point}/gu;

function containsParts(parts: readonly string[], rule: readonly string[]): boolean {
  for (let start = 0; start + rule.length <= parts.length; start++)
    if (rule.every((name, offset) => parts[start + offset] === name)) return true;
  return false;
}
