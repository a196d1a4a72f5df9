import { test } from "vitest";
import { specOf } from "./generate.ts";
import { interpret, bodyOf } from "./model.ts";
test("x", () => {
  const spec = specOf(2, {});
  const m = interpret(spec, {}, 12);
  const t0 = spec.nodes.find((n) => n.name === "t0")!;
  for (const i of [2, 3]) console.log(JSON.stringify(bodyOf(t0, m.state, i, [])), JSON.stringify(m.state));
});
