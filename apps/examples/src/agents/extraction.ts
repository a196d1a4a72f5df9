/** Extraction: a text becomes typed data, and what does not add up goes back to the model. */
import { type AnyModel, createAgent } from "statewright";
import * as z from "zod";

/** An invoice. Its lines must add up to its total. */
export const Invoice = z
  .object({
    number: z.string(),
    date: z.iso.date(),
    currency: z.enum(["EUR", "USD", "GBP"]),
    lines: z.array(z.object({ text: z.string(), cents: z.int() })).min(1),
    totalCents: z.int(),
  })
  .refine(({ lines, totalCents }) => lines.reduce((sum, { cents }) => sum + cents, 0) === totalCents, {
    path: ["totalCents"],
    message: "the lines do not add up to it",
  });

/** Reads invoices. It has three tries, and then fails with all that was wrong. */
export function invoiceReader(model: AnyModel) {
  return createAgent({
    name: "invoices",
    model,
    instructions: "Read the invoice. Amounts are in cents.",
    settings: { temperature: 0 },
    output: { schema: Invoice, name: "invoice", repairs: 2 },
  });
}

/** Read one invoice: a text, or a scan of it. */
export async function readInvoice(model: AnyModel, page: string | Uint8Array): Promise<z.infer<typeof Invoice>> {
  const input =
    typeof page === "string"
      ? page
      : { text: "The invoice is in the picture.", files: [{ data: page, mimeType: "image/png" }] };
  const { status, output } = await invoiceReader(model).run({ input }).result;
  if (status !== "done" || output === undefined) throw new Error(`The invoice was not read: the run is ${status}.`);
  return output;
}
