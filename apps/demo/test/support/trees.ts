/** Small source trees, as the demo finds them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Write files below a folder, and give the folder. */
export function createTree(root: string, files: Readonly<Record<string, string>>): string {
  mkdirSync(root, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** Run git in a folder, without the settings of this host. */
export function runGit(folder: string, ...args: readonly string[]): string {
  const who = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"];
  const env = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  return execFileSync("git", ["-C", folder, ...who, ...args], { encoding: "utf8", env });
}

/** A token that no provider gave out, in the shape of theirs. */
export const token = `ghp_${"a1B2c3D4".repeat(5)}`;

/** A repository with two packages, two commits, and a secret that does not belong there. */
export function createRepository(root: string): string {
  createTree(root, {
    "README.md": "# Teapot\n\nBrews tea.\n",
    "package.json": JSON.stringify({ name: "teapot", license: "MIT", description: "Brews tea." }),
    "src/index.ts": `export const kettle = "on";\n// ${"TODO"}: pour\nconst key = "${token}";\n`,
    "packages/pot/package.json": JSON.stringify({ name: "pot", license: "MIT", description: "A pot." }),
    "packages/pot/README.md": "# Pot\n",
    "packages/pot/src/pot.ts": "export const pot = 1;\n",
    "packages/pot/test/pot.test.ts": "// tests\n",
    "packages/lid/package.json": JSON.stringify({ name: "lid" }),
    "packages/lid/src/lid.ts": `export const lid = "${token}";\n`,
  });
  runGit(root, "init", "-q");
  runGit(root, "add", ".");
  runGit(root, "commit", "-q", "-m", "A pot and a lid");
  writeFileSync(join(root, "packages/pot/src/pot.ts"), "export const pot = 2;\n");
  runGit(root, "commit", "-q", "-a", "-m", "A larger pot");
  return root;
}
