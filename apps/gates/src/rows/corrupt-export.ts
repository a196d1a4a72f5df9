/** Thread export with valid checksums and one corrupted text. */
import type { ThreadExport } from "@statewright/core/store";
import type { Chance } from "@statewright/testing";
import { corruptText } from "./corrupt-text.ts";

/** Corrupted thread export, with the kind of the corrupted text. */
export interface CorruptedExport {
  readonly kind: string;
  readonly threadExport: ThreadExport;
}

/** Encoded text of an export. `replaceText` returns the export with another text in its place. */
interface TextField {
  readonly kind: string;
  readonly text: string;
  readonly replaceText: (text: string) => ThreadExport;
}

/** Corrupts one text of a thread export. */
export function corruptExport(chance: Chance, threadExport: ThreadExport): CorruptedExport {
  const texts = listTexts(threadExport);
  const chosenKind = chance.pick([...new Set(texts.map((each) => each.kind))]);
  const { text, replaceText } = chance.pick(texts.filter((each) => each.kind === chosenKind));
  return { kind: chosenKind, threadExport: replaceText(corruptText(chance, text)) };
}

function listTexts(threadExport: ThreadExport): readonly TextField[] {
  const { namespaces, events, runs } = threadExport;
  return [
    ...namespaces.flatMap((entry, namespaceIndex) => {
      const replaceEntry = (more: Partial<typeof entry>): ThreadExport => ({
        ...threadExport,
        namespaces: namespaces.with(namespaceIndex, { ...entry, ...more }),
      });
      const { checkpoints, effects, interrupts } = entry;
      return [
        ...checkpoints.flatMap((checkpoint, nth): readonly TextField[] => {
          const { row, deltas } = checkpoint;
          const replaceCheckpoint = (more: Partial<typeof checkpoint>): ThreadExport =>
            replaceEntry({ checkpoints: checkpoints.with(nth, { ...checkpoint, ...more }) });
          return [
            {
              kind: "control",
              text: row.control,
              replaceText: (control) => replaceCheckpoint({ row: { ...row, control } }),
            },
            ...deltas.map(
              (delta, deltaIndex): TextField => ({
                kind: `delta ${delta.kind}`,
                text: delta.text,
                replaceText: (text) => replaceCheckpoint({ deltas: deltas.with(deltaIndex, { ...delta, text }) }),
              }),
            ),
          ];
        }),
        ...effects.flatMap((row, nth) =>
          listFields("effect", row, ["outcome"], (changed) => replaceEntry({ effects: effects.with(nth, changed) })),
        ),
        ...interrupts.flatMap((row, nth) =>
          listFields("interrupt", row, ["payload", "answer", "onExpire"], (changed) =>
            replaceEntry({ interrupts: interrupts.with(nth, changed) }),
          ),
        ),
      ];
    }),
    ...events.flatMap((row, nth) =>
      listFields("event", row, ["text"], (changed) => ({ ...threadExport, events: events.with(nth, changed) })),
    ),
    ...runs.flatMap((row, nth) =>
      listFields("run", row, ["input"], (changed) => ({ ...threadExport, runs: runs.with(nth, changed) })),
    ),
  ];
}

/** Lists the text fields of a row. */
function listFields<Row extends object>(
  name: string,
  row: Row,
  fields: readonly (keyof Row & string)[],
  replaceRow: (changed: Row) => ThreadExport,
): readonly TextField[] {
  return fields.flatMap((field): readonly TextField[] => {
    const text = row[field];
    if (typeof text !== "string") return [];
    return [{ kind: `${name} ${field}`, text, replaceText: (corrupted) => replaceRow({ ...row, [field]: corrupted }) }];
  });
}
