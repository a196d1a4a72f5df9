/** Item processing: emits an update before each item, and reports failures with messages of the tool. */
import { defineTool } from "statewright";
import * as z from "zod";

export const processItems = defineTool({
  name: "process_items",
  label: "Item Processing",
  description: "Process a list of items in order.",
  input: z.object({ items: z.array(z.string()).describe("Items, in order") }),
  effect: "idempotent",
  run: async ({ items }, { signal, update, wait }) => {
    for (const [index, item] of items.entries()) {
      if (signal.aborted) throw new Error("Operation cancelled");
      update?.({
        content: `Processing ${index + 1}/${items.length}...`,
        details: { progress: index + 1, total: items.length },
      });
      await wait(item.length);
    }
    return `Processed ${items.length} items`;
  },
});

/** Defines a tool that saves a record by a function that may fail. */
export function defineSaveRecord(save: (record: object) => Promise<object>) {
  return defineTool({
    name: "save_record",
    label: "Record Saving",
    description: "Save a record under the value of its required field.",
    input: z.object({
      requiredField: z.string().optional().describe("Key of the saved record"),
      note: z.string().optional().describe("Optional note to save"),
    }),
    effect: "idempotent",
    run: async (record) => {
      if (record.requiredField === undefined || record.requiredField === "")
        throw new Error("requiredField is missing");
      const saved = await save(record).catch((cause: unknown) => {
        throw new Error(`Operation failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
      });
      return { content: JSON.stringify(saved), details: saved };
    },
  });
}
