"""Snapshots in object storage: S3, Google Cloud Storage, Azure Blob Storage, or a directory.

The objects of a snapshot are below the URL of the configuration or the command line (`urls.py`):

    NAME/parts/000000-SHA256    the data file in parts of 16 MiB; the last part may be shorter
    NAME/manifest.json          what the snapshot contains, with the digest of each part; it is written last

1. NAME is the time of the snapshot and the GUID of its queue manager. So names sort by time, and queue
   managers can share a URL.
2. A snapshot without a manifest is unfinished. Readers ignore it, `push` continues it, `prune` deletes it
   after a day.
3. The name of a part contains its digest. A part that exists under its name, with its size, has the content,
   and `push` does not send it again.
4. `prune` deletes the manifest first, so a snapshot with a manifest always has all its parts.
5. The manifest names no paths: those of the parts follow from their numbers and digests.

Coroutines of this package read and write local files without a thread, so they need a loop of their own.
The package `obstore` does the transport. It is imported when a URL is opened, since it is an extra.
"""
