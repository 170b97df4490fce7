<#
.SYNOPSIS
    Writes the messages of an MSMQ queue as JSON lines, for `msmq-lake import`. Nothing is removed from the queue.
.DESCRIPTION
    Windows PowerShell 5.1 with the feature "Microsoft Message Queue (MSMQ) Server" (System.Messaging). Messages are peeked with a
    cursor, in the order of the queue. Bodies are written as the bytes that they have on the wire. It has not been run on every version of Windows.
.EXAMPLE
    .\Export-MsmqMessages.ps1 -Queue '.\private$\orders' -File orders.jsonl
#>
param(
    [Parameter(Mandatory)] [string] $Queue,
    [Parameter(Mandatory)] [string] $File
)
$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Messaging

function ConvertTo-Base64([byte[]] $Bytes) { [Convert]::ToBase64String($Bytes) }

$source = New-Object System.Messaging.MessageQueue($Queue, [System.Messaging.QueueAccessMode]::Peek)
$source.MessageReadPropertyFilter.SetAll()
$writer = New-Object System.IO.StreamWriter($File, $false, (New-Object System.Text.UTF8Encoding($false)))
$cursor = $source.CreateCursor()
$action = [System.Messaging.PeekAction]::Current
$count = 0
try {
    while ($true) {
        try { $message = $source.Peek([TimeSpan]::Zero, $cursor, $action) }
        catch [System.Messaging.MessageQueueException] {
            if ($_.Exception.MessageQueueErrorCode -eq [System.Messaging.MessageQueueErrorCode]::IOTimeout) { break }
            throw
        }
        $action = [System.Messaging.PeekAction]::Next
        $body = New-Object byte[] $message.BodyStream.Length
        [void] $message.BodyStream.Read($body, 0, $body.Length)
        $identifier = $message.Id -split '\\'
        $row = [ordered]@{
            message_id         = '{' + $identifier[0] + '}\' + $identifier[1]
            queue              = $Queue
            label              = $message.Label
            priority           = [int] $message.Priority
            app_specific       = $message.AppSpecific
            body_type          = $message.BodyType
            body_b64           = ConvertTo-Base64 $body
            extension_b64      = ConvertTo-Base64 $message.Extension
            delivery           = [int] $message.Recoverable
            sent_time          = $message.SentTime.ToUniversalTime().ToString('o')
            arrived_time       = $message.ArrivedTime.ToUniversalTime().ToString('o')
            source_machine = $identifier[0]
        }
        if ($message.ResponseQueue) { $row.response_queue = $message.ResponseQueue.FormatName }
        if ($message.TransactionId) { $row.xact_id = $message.TransactionId }
        $writer.WriteLine(($row | ConvertTo-Json -Compress))
        $count++
    }
}
finally {
    $writer.Dispose()
    $cursor.Close()
    $source.Dispose()
}
Write-Output "$count messages of $Queue written to $File"
