/** What `backup` takes besides the path. */
export interface BackupOptions {
  /** Put the copy in the place of a file that is there. */
  readonly overwrite?: boolean;
}
