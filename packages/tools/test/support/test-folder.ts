/** A temporary workspace of a test file, removed after it. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach } from "vitest";

/** A folder that is emptied before each test. */
export interface TestFolder {
  /** Path of the folder; its parent is temporary too, so that a test can look outside of the folder. */
  readonly root: string;
  path(name: string): string;
  put(name: string, content: string | Uint8Array): void;
  text(name: string): string;
}

/** Creates a folder for the tests of the file. */
export function createTestFolder(): TestFolder {
  const outer = realpathSync(mkdtempSync(join(tmpdir(), "statewright-tools-")));
  const root = join(outer, "work");
  beforeEach(() => {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
  });
  afterAll(() => rmSync(outer, { recursive: true, force: true }));
  return {
    root,
    path: (name) => join(root, name),
    put: (name, content) => {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), content);
    },
    text: (name) => readFileSync(join(root, name), "utf8"),
  };
}
