import { describe, expect, test } from "vitest";
import { createMachine } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  fanOut,
  inputNode,
  join,
  route,
  START,
  subgraph,
} from "../../src/index.ts";
import { toMermaid } from "../../src/inspect.ts";
import { readMermaid } from "../support/read-mermaid.ts";

test("a Mermaid diagram has every edge that can be taken and no other", () => {
  const state = defineState({ items: channel.list(z.string()) });
  const graph = defineGraph({ name: "shapes", state })
    .nodes({
      split: () => undefined,
      each: inputNode(z.string(), (_state, { input }) => ({ items: [input] })),
      left: () => undefined,
      right: () => undefined,
      both: () => undefined,
    })
    .edges({
      [START]: "split",
      split: fanOut("each", () => ["a"], { otherwise: "left" }),
      each: ["left", "right"],
      left: join("both"),
      right: join("both"),
      both: route(["split", END], () => END),
    });
  expect(toMermaid(graph).split("\n").slice(1)).toEqual([
    "  start((start))",
    "  split[split]",
    "  each[[each]]",
    "  left[left]",
    "  right[right]",
    "  both[both]",
    "  done((done))",
    "  start --> split",
    "  split ==> each",
    "  split -.-> left",
    "  each --> left",
    "  each --> right",
    "  left --o both",
    "  right --o both",
    "  both -.-> split",
    "  both -.-> done",
    "",
  ]);
});

test("a subgraph in a Mermaid diagram is a region with its own start and end, to any depth", () => {
  const state = defineState({ items: channel.list(z.string()) });
  const inside = { input: () => ({}), output: () => undefined };
  const inner = defineGraph({ name: "inner", state })
    .nodes({ look: () => undefined })
    .edges({ [START]: "look", look: END });
  const middle = defineGraph({ name: "middle", state })
    .nodes({ each: inputNode(z.string(), subgraph(inner, inside)) })
    .edges({ [START]: fanOut("each", () => ["a"], { otherwise: END }), each: END });
  const outer = defineGraph({ name: "outer", state })
    .nodes({ look: () => undefined, deep: subgraph(middle, inside) })
    .edges({ [START]: "look", look: "deep", deep: END });
  expect(toMermaid(outer).split("\n").slice(1)).toEqual([
    "  start((start))",
    "  look[look]",
    "  subgraph deep [deep]",
    "    deep_start((start))",
    "    subgraph deep_each [each]",
    "      deep_each_start((start))",
    "      deep_each_look[look]",
    "      deep_each_done((done))",
    "      deep_each_start --> deep_each_look",
    "      deep_each_look --> deep_each_done",
    "    end",
    "    deep_done((done))",
    "    deep_start ==> deep_each",
    "    deep_start -.-> deep_done",
    "    deep_each --> deep_done",
    "  end",
    "  done((done))",
    "  start --> look",
    "  look --> deep",
    "  deep --> done",
    "",
  ]);
});

describe("hostile names in Mermaid", () => {
  const names = [
    ...["end", "style", "subgraph", "click", "default", "graph", "start", "done", "a", "a_2", "ä"],
    ...[
      '"]-->x',
      "`**bold**`",
      "<script>alert(1)</script>",
      "&lt;",
      "#quot;",
      "a;b",
      "a%%b",
      "{{x}}",
      "1st",
      "two words",
      "a_",
    ],
  ];
  const events = names.map((name) => `go ${name}`);
  const machine = createMachine({
    id: "hostile",
    initial: "end",
    states: Object.fromEntries(
      names.map((name, index) => [
        name,
        {
          id: `s${index}`,
          initial: "a",
          states: { a: {}, end: {} },
          on: { [events[index] ?? ""]: `#s${(index + 1) % names.length}` },
        },
      ]),
    ),
  });

  test("hostile names are rendered by Mermaid as literal text, and no two nodes share an id [E23, R20]", async () => {
    const { nodes, regions, edges } = await readMermaid(toMermaid(durableMachine(machine, { version: 1 })));
    expect(regions.map(({ title }) => title).toSorted()).toEqual(names.toSorted());
    expect(new Set(regions.map(({ id }) => id)).size).toBe(names.length);
    expect(nodes.size).toBe(1 + names.length * 3);
    expect(edges.flatMap(({ text }) => (text === "" ? [] : [text])).toSorted()).toEqual(events.toSorted());
  });
});
