/** A temporary workspace of a test file, removed after it. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach } from "vitest";

/** A folder that is empty before each test. */
export interface TestFolder {
  /** The folder itself, as it is named; it lies in another one, so that a test can look beside it. */
  readonly root: string;
  path(name: string): string;
  put(name: string, content: string | Uint8Array): void;
  text(name: string): string;
}

/** Make a folder for the tests of this file. */
export function testFolder(): TestFolder {
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
