/** Pictures of graphs: content, legibility, and safety of the SVG. */
import process from "node:process";
import { durableMachine, END, type GraphDefinition, START } from "@statewright/core";
import { describeGraph, toMermaid } from "@statewright/core/inspect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createMachine } from "xstate";
import { drawOutline, getPictureSize, pictureStyle, toSvg } from "../src/index.ts";
import {
  anyMachine,
  createGraph,
  createLargeGraph,
  createNestedGraph,
  either,
  generateGraph,
} from "./support/graphs.ts";
import { isInside, isOverlapping, type Picture, type Rect, readPicture } from "./support/read-picture.ts";

/** Number of random machines, and a third of the random graphs; more with STATEWRIGHT_WHOLE=1. */
const many = process.env["STATEWRIGHT_WHOLE"] === "1" ? 100 : 20;

describe("picture content", () => {
  test("a picture of a random graph has exactly its declared edges at every depth, like the Mermaid text [E23]", () => {
    let graphs = 0;
    const property = fc.property(generateGraph(2), (graph) => {
      graphs += 1;
      const picture = readPicture(toSvg(graph));
      const { nodes, edges } = listDeclared(graph, "");
      expect(picture.edges.map(({ id }) => id).toSorted()).toEqual(edges.toSorted());
      expect(listNames(picture)).toEqual(nodes.toSorted());
      expect(toMermaid(graph).match(/^ *\w+ (-->|--o|==>|-\.->) \w+$/gm)).toHaveLength(edges.length);
      checkPlaces(picture);
    });
    fc.assert(property, { numRuns: 3 * many });
    expect(graphs).toBe(3 * many);
  });

  test("each kind of node and edge has its own look and label in a picture", () => {
    const { nodes, edges, regions, labels } = readPicture(toSvg(createNestedGraph()));
    const node = (id: string) => nodes.find((each) => each.id === id);
    expect(node("ask")).toMatchObject({ classes: ["body"], title: "ask: node", texts: ["ask"] });
    expect(node("research.check")).toMatchObject({ classes: ["tools"], title: "check: tool node" });
    expect(node("research.search.Fetch")).toMatchObject({ classes: ["input"], title: "Fetch: input node" });
    expect(node("research.search.rank")).toMatchObject({
      classes: ["body", "deferred"],
      title: "rank: node, runs when no other node is runnable",
      texts: ["rank", "deferred"],
    });
    expect(node(`Source.${START}`)).toMatchObject({ classes: ["start"], title: "start" });
    expect(node(`research.${END}`)).toMatchObject({ classes: ["end"], title: "end" });
    expect(regions.map(({ id, title }) => `${id}, ${title}`)).toEqual([
      "research, research: subgraph",
      "research.search, search: subgraph",
      "Source, Source: subgraph, once for each input",
    ]);
    const shown = edges.filter(({ id }) => !/^(research|Source)\./.test(id));
    expect(shown.map(({ classes, title }) => `${classes.join(" ")}: ${title}`)).toEqual([
      "edge to: start → ask",
      "edge route: ask → research, when chosen",
      "edge route: ask → publish, when chosen",
      "edge each: research → Source, once for each input",
      "edge otherwise: research → publish, without inputs",
      "edge to: Source → publish",
      "edge route: publish → ask, when chosen",
      "edge route: publish → publish, when chosen",
      "edge route: publish → end, when chosen",
    ]);
    expect(edges.filter(({ classes }) => classes.includes("join"))).toHaveLength(2);
    expect(edges.filter(({ classes }) => classes.includes("goto"))).toHaveLength(2);
    expect(labels.map(({ text }) => text).slice(-7)).toEqual([
      "research",
      "publish",
      "each",
      "if none",
      "ask",
      "publish",
      "end",
    ]);
  });

  test("a picture of a durable machine shows its states, regions and events, also between regions", () => {
    const picture = readPicture(toSvg(order()));
    expect(picture.regions.map(({ id }) => id)).toEqual(["paying", "paying.card", "sending"]);
    expect(picture.edges.filter(({ title }) => title.includes(": ")).map(({ title }) => title)).toEqual(
      [
        "paying.asking → paying.card.typing: PAY",
        "sending.packing → sending.gone: SENT",
        "paying.card.typing → paying.card.checking: TYPED [if]",
        "paying.card.checking → paying.card.typing: after 60000 ms",
        "sending → paying: BACK",
        "sending.packing → paying.card.checking: AGAIN",
        "paying.card.checking → sending.packing: PAID",
        "paying.card.checking → lost: STOLEN",
        "paying → lost: CANCEL",
      ].toSorted(compareByOrder(picture.edges.map(({ title }) => title))),
    );
    checkPlaces(picture);
    checkPlaces(readPicture(toSvg(order(), { direction: "right" })));
  });

  test("a marked part of a picture has its mark as a class, and so has the label of a marked edge", () => {
    const svg = toSvg(createNestedGraph(), {
      mark: (part) => {
        if (!("from" in part)) return part.id === "research.plan" ? "current" : undefined;
        return part.kind === "route" ? "bad" : part.id === "Source -> publish" ? "good" : undefined;
      },
    });
    const { nodes, edges } = readPicture(svg);
    const marked = [...nodes, ...edges].filter(({ classes }) => /^(good|bad|current)$/.test(classes.at(-1) ?? ""));
    expect(marked.map(({ id, classes }) => `${classes.at(-1)} ${id}`)).toEqual([
      "current research.plan",
      "bad ask -> research",
      "bad ask -> publish",
      "good Source -> publish",
      "bad publish -> ask",
      "bad publish -> publish",
      `bad publish -> ${END}`,
    ]);
    expect(svg.match(/class="label bad"/g)).toHaveLength(5);
  });
});

describe("picture layout", () => {
  test.each(["down", "right"] as const)(
    "a picture of sixty nodes with nested graphs, %s: no overlap, and every part inside its region",
    (direction) => {
      const picture = readPicture(toSvg(createLargeGraph(), { direction }));
      expect(picture.nodes.length + picture.regions.length).toBeGreaterThan(60);
      checkPlaces(picture);
    },
  );

  test.each(["down", "right"] as const)(
    "a picture of machines with events between regions, %s: no overlap, and every part inside its region",
    (direction) => {
      let between = 0;
      const property = fc.property(anyMachine, (machine) => {
        const picture = readPicture(toSvg(machine, { direction }));
        checkPlaces(picture);
        between += picture.edges.filter(
          ({ id }) => new Set(id.split(" -> ").map((end) => end.split(".").length)).size > 1,
        ).length;
      });
      fc.assert(property, { numRuns: many });
      expect(between).toBeGreaterThan(many);
    },
  );

  test("a long name in a picture is cut in its box and complete in its title", () => {
    const name = `n${"x".repeat(63)}`;
    const { nodes, labels } = readPicture(
      toSvg(createGraph({ [name]: "body" }, { [START]: either(name, END), [name]: END })),
    );
    const node = nodes.find(({ id }) => id === name);
    expect(node?.texts[0]).toBe(`n${"x".repeat(38)}…`);
    expect(node?.title).toBe(`${name}: node`);
    expect(labels.map(({ text }) => text)).toEqual([`n${"x".repeat(22)}…`, "end"]);
  });

  test("a picture of one graph is always the same text, whatever was drawn before", () => {
    const first = toSvg(createNestedGraph());
    toSvg(createLargeGraph());
    expect(toSvg(createNestedGraph())).toBe(first);
    const right = toSvg(order(), { direction: "right" });
    expect(toSvg(order(), { direction: "right" })).toBe(right);
  });
});

describe("self-contained pictures", () => {
  test("an outline sent as JSON from another process yields the same picture", () => {
    const graph = createNestedGraph();
    const sent = JSON.parse(JSON.stringify(describeGraph(graph)));
    expect(drawOutline(sent, { name: graph.name })).toBe(toSvg(graph));
  });

  test("a picture has no URL, script, link, font or external image [E23]", () => {
    const svg = toSvg(createLargeGraph());
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|url\(|@import|@font-face|href|\bon\w+=/,
    );
    const { names, root } = readPicture(svg);
    expect([...names].toSorted()).toEqual(["circle", "g", "path", "polygon", "rect", "style", "text", "title"]);
    expect(root.getAttribute("role")).toBe("img");
    expect(root.getAttribute("aria-label")).toBe("Graph large");
    expect(root.getElementsByTagName("style")[0]?.textContent).toContain("prefers-color-scheme:dark");
    expect(
      svg
        .match(/<style>[^<]*/)?.[0]
        .match(/(?<=[{},])\.\w+/g)
        ?.every((name) => name === ".statewright"),
    ).toBe(true);
  });

  test("hostile names in a picture are escaped text [E23, R20]", () => {
    const hostile = [
      "<script>alert(1)</script>",
      `"><img src=x onerror=alert(1)>`,
      "' onload='alert(1)",
      "&lt;b&gt; &amp; ]]>",
      "</title></svg>",
      "\u202Egnp.exe\u0000\u0007\uD800",
      "数据库 🚀",
    ];
    const machine = createMachine({
      id: "hostile",
      initial: hostile[0] ?? "",
      states: Object.fromEntries(
        hostile.map((name, index) => [
          name,
          { id: `s${index}`, on: { [`${name}!`]: `#s${(index + 1) % hostile.length}` } },
        ]),
      ),
    });
    const { nodes, edges, names } = readPicture(toSvg(durableMachine(machine, { version: 1 }) as GraphDefinition));
    const harmless = hostile.map((name) =>
      name.replace("\u202E", "\uFFFD").replace("\u0000\u0007\uD800", "\uFFFD\uFFFD\uFFFD"),
    );
    expect(nodes.flatMap(({ texts }) => texts)).toEqual(harmless);
    expect(edges.slice(1).map(({ title }) => title.endsWith("!"))).toEqual(hostile.map(() => true));
    expect([...names].toSorted()).toEqual(["circle", "g", "path", "rect", "style", "text", "title"]);
  });
});

/** An order machine: nested states, and events from one region into another. */
function order(): GraphDefinition {
  const machine = createMachine({
    id: "order",
    initial: "paying",
    states: {
      paying: {
        initial: "asking",
        on: { CANCEL: "lost" },
        states: {
          asking: { on: { PAY: "card.typing" } },
          card: {
            initial: "typing",
            states: {
              typing: { on: { TYPED: { guard: () => true, target: "checking" } } },
              checking: { after: { 60000: "typing" }, on: { PAID: "#order.sending.packing", STOLEN: "#order.lost" } },
            },
          },
        },
      },
      sending: {
        initial: "packing",
        on: { BACK: "paying" },
        states: { packing: { on: { SENT: "gone", AGAIN: "#order.paying.card.checking" } }, gone: { type: "final" } },
      },
      lost: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1 });
}

/** Ids of nodes and edges of the declaration. */
function listDeclared(
  graph: GraphDefinition,
  path: string,
): { readonly nodes: readonly string[]; readonly edges: readonly string[] } {
  const edges = [...graph.edges].flatMap(([source, edge]) =>
    [...new Set([...edge.targets, ...(edge.kind === "commandTargets" ? [END] : [])])].map(
      (target) => `${path}${source} -> ${path}${target}`,
    ),
  );
  const ends = edges.some((edge) => edge.endsWith(`-> ${path}${END}`)) ? [END] : [];
  const inner = [...graph.nodes.values()].map(({ name, subgraph }) =>
    subgraph === undefined ? { nodes: [], edges: [] } : listDeclared(subgraph.graph, `${path}${name}.`),
  );
  return {
    nodes: [
      ...[START, ...graph.nodes.keys(), ...ends].map((name) => path + name),
      ...inner.flatMap(({ nodes }) => nodes),
    ],
    edges: [...edges, ...inner.flatMap(({ edges: below }) => below)],
  };
}

function listNames({ nodes, regions }: Picture): readonly string[] {
  return [...nodes, ...regions].map(({ id }) => id).toSorted();
}

/** Checks that boxes and labels are apart and inside their region, and that lines touch only boxes of their edge. */
function checkPlaces({ box, nodes, regions, edges, labels }: Picture): void {
  const wrong: string[] = [];
  const refuse = (holds: boolean, what: string): void => {
    if (!holds) wrong.push(what);
  };
  const all = [...nodes, ...regions];
  const rects = new Map(regions.map(({ id, rect }) => [id, rect]));
  const getOuterRect = (id: string): Rect => rects.get(id.split(".").slice(0, -1).join(".")) ?? box;
  const holds = (region: string, id: string): boolean => id.startsWith(`${region}.`);
  for (const { id, rect } of all) refuse(isInside(rect, getOuterRect(id)), `${id} is outside`);
  for (const label of labels) refuse(isInside(label, box), `${label.text} is outside`);
  all.forEach((one, index) => {
    for (const other of all.slice(index + 1))
      if (!holds(one.id, other.id) && !holds(other.id, one.id))
        refuse(!isOverlapping(one.rect, other.rect), `${one.id} covers ${other.id}`);
  });
  for (const { id, heading } of regions) {
    refuse(isInside(heading, getOuterRect(`${id}.`)), `the name of ${id} is outside`);
    for (const node of nodes) refuse(!isOverlapping(heading, node.rect), `${node.id} covers the name of ${id}`);
  }
  labels.forEach((label, index) => {
    for (const other of labels.slice(index + 1))
      refuse(!isOverlapping(label, other), `${label.text} covers ${other.text}`);
    for (const { id, rect } of nodes) refuse(!isOverlapping(label, rect), `${label.text} covers ${id}`);
  });
  for (const { id, points } of edges) {
    const ends = id.split(" -> ");
    const strange = all.filter((each) => !ends.some((end) => end === each.id || holds(each.id, end)));
    const spots = points.map(({ x, y }) => ({ x: x - 0.2, y: y - 0.2, width: 0.4, height: 0.4 }));
    const getBox = (end?: string): Rect | undefined => all.find((each) => each.id === end)?.rect;
    refuse(isNear(spots.at(0), getBox(ends[0]), 1), `${id} does not leave its source`);
    refuse(isNear(spots.at(-1), getBox(ends[1]), 10), `${id} does not come to its target`);
    refuse(
      spots.every((spot) => isInside(spot, box)),
      `${id} is outside`,
    );
    for (const label of labels)
      if (label.id !== id)
        refuse(!spots.some((spot) => isOverlapping(spot, label)), `${id} crosses the label ${label.text}`);
    for (const { id: met, heading } of regions)
      refuse(!spots.some((spot) => isOverlapping(spot, heading)), `${id} crosses the name of ${met}`);
    for (const { id: met, rect } of strange)
      refuse(!spots.some((spot) => isOverlapping(spot, rect)), `${id} crosses ${met}`);
  }
  expect(wrong).toEqual([]);
}

/** Returns whether a point is at most this far outside of a rectangle: a line ends at the tip of its arrow. */
function isNear(spot: Rect | undefined, rect: Rect | undefined, far: number): boolean {
  if (spot === undefined || rect === undefined) return false;
  const { x, y, width, height } = rect;
  return isInside(spot, { x: x - far, y: y - far, width: width + 2 * far, height: height + 2 * far });
}

function compareByOrder(list: readonly string[]): (one: string, other: string) => number {
  return (one, other) => list.indexOf(one) - list.indexOf(other);
}

describe("pictures in a page with its own style sheet", () => {
  test("a picture without its style differs from the self-contained one in the style element only [ND16]", () => {
    const whole = toSvg(createNestedGraph());
    const plain = toSvg(createNestedGraph(), { style: false });
    expect(plain).toBe(whole.replace(/<style>.*<\/style>\n/, ""));
    expect(plain).not.toMatch(/style/);
    expect(drawOutline(describeGraph(createNestedGraph()), { name: "nested", style: false })).not.toMatch(/style/);
  });

  test("the style sheet of pictures has the rules of a self-contained picture, with each color as a variable [ND16]", () => {
    const css = pictureStyle();
    const inline = /<style>(.*?)@media/.exec(toSvg(createNestedGraph()))?.[1] ?? "";
    const lightColors = new Map(
      [...(/:root\{(.*?)\}/.exec(css)?.[1] ?? "").matchAll(/(--[\w-]+):(#\w+)/g)].map((match) => [match[1], match[2]]),
    );
    const rules = css.slice(css.indexOf(".statewright "));
    const resolved = rules.replaceAll(/var\((--[\w-]+)\)/g, (_, name: string) => lightColors.get(name) ?? "missing");
    expect(resolved.replaceAll("\n", "")).toBe(inline);
    expect(rules.match(/#[0-9a-f]{6}/)).toBeNull();
    expect(css).not.toMatch(/url\(|@import|<|expression/);
  });

  test("the colors of a style sheet follow the system, and the themes of a page come after the system [ND16]", () => {
    const css = pictureStyle({ themes: { light: ":root.light", dark: ":root.dark" } });
    const values = [...css.matchAll(/([^\n{}]*)\{[^{}]*--statewright-canvas:(#\w+)/g)].map((match) => [
      match[1],
      match[2],
    ]);
    expect(values).toEqual([
      [":root", "#ffffff"],
      [":root", "#0d1117"],
      [":root.light", "#ffffff"],
      [":root.dark", "#0d1117"],
    ]);
    expect(css).toContain("@media (prefers-color-scheme:dark){:root{");
  });

  test("the size of a picture is known in both directions without drawing it [ND16]", () => {
    const outline = describeGraph(createNestedGraph());
    for (const direction of ["down", "right"] as const) {
      const { width, height } = getPictureSize(outline, direction);
      const svg = drawOutline(outline, { name: "nested", direction });
      expect(svg).toContain(`viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`);
    }
    expect(getPictureSize(outline)).toEqual(getPictureSize(outline, "down"));
    expect(getPictureSize(outline, "right").width).toBeGreaterThan(getPictureSize(outline, "down").width);
  });
});
