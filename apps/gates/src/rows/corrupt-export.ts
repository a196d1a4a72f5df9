/** A thread whose rows are whole in themselves, while one of the texts that they hold is bent. */
import type { ThreadImage } from "@statewright/core";
import type { Chance } from "@statewright/testing";
import { bentText } from "./corrupt-text.ts";

/** Which text was bent, and the thread with it. */
export interface BentImage {
  readonly what: string;
  readonly image: ThreadImage;
}

/** A text of an image that a codec has made, and the image with another in its place. */
interface TextOf {
  readonly what: string;
  readonly text: string;
  readonly put: (text: string) => ThreadImage;
}

/** Bend one text of a thread. */
export function bentImage(chance: Chance, image: ThreadImage): BentImage {
  const texts = textsOf(image);
  const what = chance.of([...new Set(texts.map((each) => each.what))]);
  const { text, put } = chance.of(texts.filter((each) => each.what === what));
  return { what, image: put(bentText(chance, text)) };
}

function textsOf(image: ThreadImage): readonly TextOf[] {
  const { lines, events, runs } = image;
  return [
    ...lines.flatMap((line, at) => {
      const put = (more: Partial<typeof line>): ThreadImage => ({
        ...image,
        lines: lines.with(at, { ...line, ...more }),
      });
      const { checkpoints, effects, interrupts } = line;
      return [
        ...checkpoints.flatMap((checkpoint, nth): readonly TextOf[] => {
          const { row, deltas } = checkpoint;
          const change = (more: Partial<typeof checkpoint>): ThreadImage =>
            put({ checkpoints: checkpoints.with(nth, { ...checkpoint, ...more }) });
          return [
            { what: "control", text: row.control, put: (control) => change({ row: { ...row, control } }) },
            ...deltas.map(
              (delta, place): TextOf => ({
                what: `delta ${delta.kind}`,
                text: delta.text,
                put: (text) => change({ deltas: deltas.with(place, { ...delta, text }) }),
              }),
            ),
          ];
        }),
        ...effects.flatMap((row, nth) =>
          fieldsOf("effect", row, ["outcome"], (changed) => put({ effects: effects.with(nth, changed) })),
        ),
        ...interrupts.flatMap((row, nth) =>
          fieldsOf("question", row, ["payload", "answer", "onExpire"], (changed) =>
            put({ interrupts: interrupts.with(nth, changed) }),
          ),
        ),
      ];
    }),
    ...events.flatMap((row, nth) =>
      fieldsOf("event", row, ["text"], (changed) => ({ ...image, events: events.with(nth, changed) })),
    ),
    ...runs.flatMap((row, nth) =>
      fieldsOf("run", row, ["input"], (changed) => ({ ...image, runs: runs.with(nth, changed) })),
    ),
  ];
}

/** The fields of a row that hold a text. */
function fieldsOf<Row extends object>(
  name: string,
  row: Row,
  fields: readonly (keyof Row & string)[],
  put: (changed: Row) => ThreadImage,
): readonly TextOf[] {
  return fields.flatMap((field): readonly TextOf[] => {
    const text = row[field];
    if (typeof text !== "string") return [];
    return [{ what: `${name} ${field}`, text, put: (bent) => put({ ...row, [field]: bent }) }];
  });
}
