import { storeConformance, wordConformance } from "@statewright/testing/conformance";
import { describe, test } from "vitest";
import { openFile, openMemory } from "./support/stores.ts";

const tests = [...storeConformance, ...wordConformance];

describe("a store in a file", () => {
  for (const { name, run } of tests) test(name, () => run(() => openFile()));
});

describe("a private store in memory", () => {
  for (const { name, run } of tests.filter(({ shared }) => !shared)) test(name, () => run(openMemory));
});
