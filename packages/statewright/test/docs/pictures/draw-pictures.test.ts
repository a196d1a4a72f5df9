import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the diagrams of the docs equal newly drawn diagrams byte for byte", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pictures-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await runProgram(new URL("draw-pictures.ts", import.meta.url), { cwd: folder });
  const drawn = join(folder, "docs/pictures");
  const pictureFolder = fileURLToPath(new URL("../../../../../docs/pictures", import.meta.url));
  const names = await readdir(drawn);
  expect((await readdir(pictureFolder)).toSorted()).toEqual(names.toSorted());
  for (const name of names) {
    const text = await readFile(join(pictureFolder, name), "utf8");
    const again = await readFile(join(drawn, name), "utf8");
    expect(text === again, `${name} is not what draw-pictures.ts draws: run it at the root of the repository`).toBe(
      true,
    );
  }
});
